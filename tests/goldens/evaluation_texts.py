"""Made-up documents for make_evaluation.py, in the schemas of the eight tasks' sources, and documents for perplexity.

They hold what the sources are known to hold: numbers instead of letters as answer keys, three and five choices, WikiHow's
bracketed artifacts, empty second contexts and supports, blanks at either end, passages that several questions share,
characters beyond ASCII, contexts longer than the model takes.
"""


def choices(*texts, labels="ABCDE"):
    return {"text": list(texts), "label": list(labels[: len(texts)])}


ARC_EASY = [
    {"id": "made_1", "question": "Which of these keeps a house warm at night?", "choices": choices("a stove", "a window left open", "a bucket of sand", "a paper map"), "answerKey": "A"},
    {"id": "made_2", "question": "A bell is struck. What reaches the ear first?", "choices": choices("light", "sound", "heat", labels="123"), "answerKey": "2"},
    {"id": "made_3", "question": "What do most ferns need to grow?", "choices": choices("salt", "shade and water", "strong wind", "snow", "gravel"), "answerKey": "B"},
    {"id": "made_4", "question": "Ein Körper fällt 2 s lang; wie ändert sich seine Geschwindigkeit?", "choices": choices("sie wächst", "sie bleibt 0", "sie wird kleiner – überall", "日本語"), "answerKey": "A"},
    {"id": "made_5", "question": "Which tool measures mass?", "choices": choices("ruler", "clock", "balance", "thermometer", labels="1234"), "answerKey": "3"},
    {"id": "made_6", "question": " Which moves water upward ?  ", "choices": choices(" a pump", "a dam ", "a leaf", "a  stone"), "answerKey": "D"},
]
ARC_CHALLENGE = [
    {"id": "hard_1", "question": "A hiker sees smoke before she hears the blast. Which explains this best?", "choices": choices("Light travels faster than sound.", "Smoke is lighter than air.", "The blast was far too quiet.", "Her eyes are nearer to it."), "answerKey": "A"},
    {"id": "hard_2", "question": "Iron left in the rain turns brown. The brown substance is", "choices": choices("iron oxide", "wet iron", "soil"), "answerKey": "A"},
    {"id": "hard_3", "question": "Which change would slow the boiling of water on a mountain trip?", "choices": choices("a wider pot", "less fire", "climbing down", "adding salt", labels="1234"), "answerKey": "2"},
    {"id": "hard_4", "question": "Two plates move apart under the sea. What forms between them?", "choices": choices("new crust", "a glacier", "older rock than at the shore", "a river delta"), "answerKey": "A"},
    {"id": "hard_5", "question": "Why does a cup of tea cool faster in wind?", "choices": choices("Wind carries warm, moist air away.", "Wind is always cold.", "Tea dissolves in air.", "Cups shrink."), "answerKey": "A"},
    {"id": "hard_6", "question": "A lamp of 60 W burns for 2 h. How much energy does it use?", "choices": choices("30 Wh", "60 Wh", "120 Wh", "3600 Wh"), "answerKey": "C"},
]
HARBOUR = ("Harbour clock -- The harbour clock of the small town was built by two sisters who sold nets. It strikes only at low "
           "water, because the weights hang from a float in the basin. When the basin was rebuilt the float was kept, and the "
           "clock has been late by a few minutes ever since, which nobody in the town minds.")
BOOLQ = [
    {"question": "does the harbour clock strike at high water", "answer": False, "passage": HARBOUR},
    {"question": "was the harbour clock built by sisters", "answer": True, "passage": HARBOUR},
    {"question": "is the clock of the harbour late", "answer": True, "passage": HARBOUR},
    {"question": "can a kite fly without a tail", "answer": True, "passage": "Kite -- Some kites have no tail; a bowed frame keeps them steady."},
    {"question": "is the pear tree older than the wall", "answer": False, "passage": "Walled garden -- The wall was laid first. The pear tree was planted “later”, in the shelter of it.\nIt is 80 years old."},
    {"question": "do all of the seven mills still grind", "answer": False, "passage": "Mill brook (valley) -- Seven mills stood along the brook. " * 9 + "Two of them still grind."},
]
HELLASWAG = [
    {"ind": 4, "activity_label": "Baking bread", "ctx_a": "A woman kneads dough on a table.", "ctx_b": "she", "ctx": "A woman kneads dough on a table. she", "endings": ["puts the dough into a bowl to rest.", "throws the table out of the window.", "paints the dough blue and leaves.", "reads the dough a story."], "source_id": "made~1", "split": "val", "split_type": "indomain", "label": "0"},
    {"ind": 9, "activity_label": "Home and Garden", "ctx_a": "[header] How to stack firewood [title] Choose a dry place. [step] Keep it off the ground.", "ctx_b": "", "ctx": "[header] How to stack firewood [title] Choose a dry place. [step] Keep it off the ground.", "endings": ["[substeps] Lay two poles first. Then stack across them.", "Pour water over it [title] daily.", "Hide the wood  under the  bed.", " Sing to it. [step] Wait. "], "source_id": "made~2", "split": "val", "split_type": "zeroshot", "label": "0"},
    {"ind": 12, "activity_label": "Rowing", "ctx_a": "Four people sit in a boat.", "ctx_b": "the ONE in front", "ctx": "Four people sit in a boat. the ONE in front", "endings": ["calls out the strokes.", "is made of soup.", "stands on the shore, far away.", "rows the wrong way the whole time and laughs about it with the others."], "source_id": "made~3", "split": "val", "split_type": "indomain", "label": "3"},
    {"ind": 13, "activity_label": "Cooking", "ctx_a": "A man cuts onions.", "ctx_b": "élodie, his neighbour,", "ctx": "A man cuts onions. élodie, his neighbour,", "endings": ["cries a little – à peine.", "sells the knife.", "cuts the onions again.", "knocks."], "source_id": "made~4", "split": "val", "split_type": "indomain", "label": "1"},
    {"ind": 20, "activity_label": "Skating", "ctx_a": "A girl skates around a pond [laughing].", "ctx_b": "two dogs", "ctx": "A girl skates around a pond [laughing]. two dogs", "endings": ["follow her on the ice and slip.", "write letters.", "are skated on by the pond.", "bark  at  the  ice."], "source_id": "made~5", "split": "val", "split_type": "zeroshot", "label": "0"},
    {"ind": 31, "activity_label": "Juggling", "ctx_a": "A boy has three balls.", "ctx_b": "he", "ctx": "A boy has three balls. he", "endings": ["throws them one after the other.", "eats 12 of 3 balls.", "is a ball.", "throws them one after another."], "source_id": "made~6", "split": "val", "split_type": "indomain", "label": "2"},
]
OPENBOOKQA = [
    {"id": "1-1", "question_stem": "A mole digs so that it can", "choices": choices("find worms", "see stars", "fly", "freeze"), "answerKey": "A"},
    {"id": "1-2", "question_stem": "Rain over a dry field makes the soil ", "choices": choices("wet", "louder", "square", "metal"), "answerKey": "A"},
    {"id": "1-3", "question_stem": "What would roll best down a slope?", "choices": choices("a barrel", "a brick", "a flag", "a puddle"), "answerKey": "B"},
    {"id": "1-4", "question_stem": "Ice floats on a lake since it is", "choices": choices("less dense", "colder", "younger than the lake", "heavy"), "answerKey": " D"},
    {"id": "1-5", "question_stem": "Owls hunt at night; their eyes let in", "choices": choices("much light", "no light", "mice", "the moon's noise"), "answerKey": "A"},
    {"id": "1-6", "question_stem": "Salt left when sea water dries is", "choices": choices("a solid", "a gas", "a tide", "a sound"), "answerKey": "C"},
]
PIQA = [
    {"goal": "How to keep a door from squeaking?", "sol1": "Put a drop of oil on the hinges.", "sol2": "Put a drop of oil on the handle.", "label": 0},
    {"goal": "carry many books", "sol1": "Stack them in a crate and lift with both hands.", "sol2": "Stack them on a wet sheet of paper and lift by one corner, slowly.", "label": 0},
    {"goal": "To peel garlic quickly,", "sol1": "crush it with the flat of a knife first.", "sol2": "freeze it in a shoe for 2-3 years.", "label": 0},
    {"goal": "Mark a straight cut on a board.", "sol1": "Draw along a rope.", "sol2": "Draw along a ruler.", "label": 1},
    {"goal": "Dry wet boots ", "sol1": "Stuff them with newspaper.", "sol2": "Stuff them with ice.", "label": 0},
    {"goal": "How can one find north without a compass?", "sol1": "Watch which way the noon shadow points – north of the tropics it is north.", "sol2": "Ask a snail.", "label": 1},
]
SCIQ = [
    {"question": "What is the force that pulls a stone to the ground?", "distractor3": "friction", "distractor1": "tension", "distractor2": "lift", "correct_answer": "gravity", "support": "A stone that is let go falls. The force is called gravity, and it acts between all masses."},
    {"question": "Which gas do plants take in?", "distractor3": "neon", "distractor1": "oxygen", "distractor2": "hydrogen sulfide", "correct_answer": "carbon dioxide", "support": ""},
    {"question": "What do we call melted rock above the ground?", "distractor3": "ash", "distractor1": "magma", "distractor2": "ore", "correct_answer": "lava", "support": "  Melted rock below the ground is magma. Above it, it is lava. \n"},
    {"question": "What bends light in a pair of glasses?", "distractor3": "frame", "distractor1": "mirror", "distractor2": "hinge", "correct_answer": "lens", "support": "\n\nA lens bends light because light is slower in glass."},
    {"question": "At 0 °C fresh water does what?", "distractor3": "glows", "distractor1": "boils", "distractor2": "sinks", "correct_answer": "freezes", "support": "Water freezes at 0 °C. " * 14},
    {"question": "What part of the cell holds its plans?", "distractor3": "wall", "distractor1": "membrane", "distractor2": "sap", "correct_answer": "nucleus", "support": "The nucleus holds the plans of the cell."},
]
WINOGRANDE = [
    {"sentence": "Mara lent Ines the ladder because _ had to reach the roof.", "option1": "Mara", "option2": "Ines", "answer": "2"},
    {"sentence": "The trunk did not fit into the cart since the _ was too small.", "option1": "trunk", "option2": "cart", "answer": "2"},
    {"sentence": "Tom thanked Jules, and _'s coat was dry again.", "option1": "Tom", "option2": "Jules", "answer": "1"},
    {"sentence": "_ was quicker than Odd at rowing, so Odd lost.", "option1": "Liv", "option2": "Odd", "answer": "1"},
    {"sentence": "The soup was cold but the tea was hot, so the boy blew on the _ .", "option1": "soup", "option2": "tea", "answer": "2"},
    {"sentence": "Zoë gave Ådne her map; then _ could not find the way home. ", "option1": "Zoë", "option2": "Ådne", "answer": "1"},
]
PERPLEXITY = [
    {"id": "a", "source": "tales", "subdomain": "sea", "text": HARBOUR},
    {"id": "b", "source": "tales", "subdomain": "sea", "text": "The nets were sold on Fridays.\n\n\tNobody minded.  "},
    {"id": "c", "source": "tales", "subdomain": "hills", "text": "Seven mills stood along the brook. " * 30},
    {"id": "d", "source": "notes", "subdomain": "code", "text": "for i in range(12):\n        print(i  **  2)\n"},
    {"id": "e", "source": "notes", "subdomain": "code", "text": "é"},
    {"id": "f", "source": "notes", "subdomain": "words", "text": "Ein Körper fällt – 日本語 e\u0301 \U0001f469\u200d\U0001f467 <|endoftext|> it's \"fine\"."},
]

#: path in the data folder -> documents
SOURCES = {
    "ai2_arc/ARC-Easy": ARC_EASY,
    "ai2_arc/ARC-Challenge": ARC_CHALLENGE,
    "boolq/none": BOOLQ,
    "hellaswag/none": HELLASWAG,
    "openbookqa/main": OPENBOOKQA,
    "piqa/plain_text": PIQA,
    "sciq/none": SCIQ,
    "winogrande/winogrande_xl": WINOGRANDE,
}
