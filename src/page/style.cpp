#include "page/html.h"

namespace olmo::page {

// Colours of the sides are Okabe and Ito's blue and vermillion (sky blue and orange on dark), which
// are told apart with every kind of colour vision; side B is dashed as well. Those of many runs
// (r0 to r6) are more of their colours, yellow and its like darkened on white; d1 to d4 are dashes.
// Paper is white, so that the dark colours are those of screens alone.
const char* style_sheet() {
  return R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--mute:#626b76;--line:#dfe3e8;--soft:#f5f7f9;
--a:#0072b2;--b:#d55e00;--b-text:#b84e00;--good:#00795a;--warn:#a35f00;--bad:#b42318;--band:#009e7326;--late:#56b4e91f;--d:#1b1f24;
--r0:#0072b2;--r1:#d55e00;--r2:#00795a;--r3:#b0568a;--r4:#3d9bd6;--r5:#a87800;--r6:#1b1f24}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--mute:#9aa4ae;--line:#2d333a;--soft:#1c2024;
--a:#56b4e9;--b:#f0a13a;--b-text:#f0a13a;--good:#3fc79a;--warn:#e8b04a;--bad:#ff8a7a;--band:#009e7340;--late:#56b4e926;--d:#e6e9ec;
--r0:#5aa9e6;--r1:#f0813a;--r2:#3fc79a;--r3:#d98cb8;--r4:#9bd4f7;--r5:#e6c34a;--r6:#e6e9ec}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1,h2,h3{line-height:1.2;letter-spacing:-.01em}
h2{font-size:1.3rem;margin:0 0 .7rem}h3{font-size:1rem;margin:1.6rem 0 .4rem}
section{margin-top:2.6rem;padding-top:1.6rem;border-top:1px solid var(--line)}
section.empty{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline;margin-top:1rem;padding-top:.6rem}.empty h2{font-size:1rem;margin:0}.empty p{margin:0}
p{margin:.5rem 0;max-width:46rem}ul{margin:.5rem 0;padding-left:1.2rem;max-width:46rem}li{margin:.15rem 0}
code,pre{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
pre{background:var(--soft);padding:.8rem 1rem;border-radius:6px;white-space:pre-wrap}
a{color:inherit}
.note,.unit,.xl,.absent{color:var(--mute)}.note,.xl{font-size:.88rem}.absent{font-style:italic}
.kicker{color:var(--mute);font-size:.88rem;margin:0}
.verdict{font-size:clamp(1.9rem,7vw,3.4rem);font-weight:700;letter-spacing:-.025em;margin:.1rem 0 .5rem;overflow-wrap:normal}
.verdict span{font-weight:400;margin-right:.18em}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}.ok{color:var(--good)}
.reason{font-size:1.2rem;line-height:1.45;margin:0 0 1rem}
blockquote{margin:0 0 1rem;padding:.1rem 0 .1rem 1rem;border-left:3px solid var(--good);max-width:46rem;font-size:1.05rem}
.caveats{border-left:3px solid var(--warn);padding:.1rem 0 .1rem 1rem;margin:1rem 0}
.caveats ul{margin:0;padding-left:1.1rem}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem;margin:1.5rem 0}
.sides>div{border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem}
.sides .name{font-weight:600;font-size:1.05rem}.sides p{margin:.1rem 0;font-size:.9rem}
.side{display:inline-block;min-width:1.45em;text-align:center;border-radius:4px;color:var(--bg);font-size:.85em;line-height:1.5;margin-right:.35em}
.side-a{background:var(--a)}.side-b{background:var(--b-text)}
.glance{list-style:none;padding:0;margin:1.5rem 0 0;max-width:none;border-top:1px solid var(--line)}
.glance li{display:grid;grid-template-columns:1.6rem 9rem 1fr;gap:.2rem .6rem;padding:.45rem 0;border-bottom:1px solid var(--line);margin:0}
.glance a{font-weight:600;text-decoration:none}.glance a:hover{text-decoration:underline}
.glance .m{text-align:center;font-weight:700}
.scroll{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{text-align:left;vertical-align:top;padding:.38rem .7rem .38rem 0;border-bottom:1px solid var(--line);overflow-wrap:break-word}
td:last-child,th:last-child{padding-right:0}
thead th{color:var(--mute);font-weight:500;border-bottom-color:var(--mute);vertical-align:bottom}
tbody th{font-weight:500;min-width:7.5rem}.n{text-align:right}.n+:not(.n){padding-left:.6rem}td.n{white-space:nowrap}td.n .absent{white-space:normal}
table .note{font-size:.92em}.i{white-space:nowrap}td code.long{overflow-wrap:anywhere}
tr.sum th,tr.sum td{font-weight:650}tr.differs td,tr.differs th{background:var(--soft)}
.tag{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .35em;font-size:.82em;white-space:nowrap}
details{margin:.7rem 0}td details{margin:0;min-width:13rem}td ol{margin:.3rem 0}td pre{margin:.3rem 0;padding:.4rem .6rem}summary{cursor:pointer;font-weight:500}
figure{margin:1.4rem 0}
figcaption{display:flex;flex-wrap:wrap;gap:.1rem .9rem;align-items:baseline;margin-bottom:.5rem;font-size:.92rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin-left:auto;color:var(--mute);font-size:.85rem}
.key{display:inline-flex;align-items:center;gap:.35rem}
.plot{display:grid;grid-template-columns:4.4rem 1fr;grid-template-rows:15rem 1.4rem;position:relative;font-size:.76rem;color:var(--mute)}
.plot>svg{width:100%;height:100%;border-bottom:1px solid var(--mute);overflow:visible}
.plot>svg.part{overflow:hidden}.ys,.xs{position:relative}.xs{grid-column:2}
.ys span{position:absolute;right:.6rem;transform:translateY(-50%);white-space:nowrap}
.xs span{position:absolute;top:.25rem;transform:translateX(-50%);white-space:nowrap}
.xs .first{transform:none}.xs .last{transform:translateX(-100%)}
.xl{text-align:center;margin:.1rem 0 0 4.4rem;max-width:none;font-size:.8rem}
svg path{fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.grid{stroke:var(--line);stroke-width:1}
.a{stroke:var(--a);stroke-width:1.6;stroke-linecap:round}.b{stroke:var(--b);stroke-width:1.6;stroke-dasharray:5 3}
.diff{stroke:var(--d);stroke-width:1.5;stroke-linecap:round}
svg .area{opacity:.17}svg .area.a,svg .area.b,svg .area.diff{stroke:none}svg .area.a{fill:var(--a)}svg .area.b{fill:var(--b)}svg .area.diff{fill:var(--d)}[data-source] .area{stroke-width:1;stroke-dasharray:none;opacity:.3}svg .bars{stroke-dasharray:none;opacity:.6}
.r0{stroke:var(--r0)}.r1{stroke:var(--r1)}.r2{stroke:var(--r2)}.r3{stroke:var(--r3)}.r4{stroke:var(--r4)}.r5{stroke:var(--r5)}.r6{stroke:var(--r6)}
svg .area.r0{fill:var(--r0)}svg .area.r1{fill:var(--r1)}svg .area.r2{fill:var(--r2)}svg .area.r3{fill:var(--r3)}svg .area.r4{fill:var(--r4)}svg .area.r5{fill:var(--r5)}svg .area.r6{fill:var(--r6)}
[class^=r]{stroke-width:1.6}.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:8 3 2 3}.d4{stroke-dasharray:12 4}[data-source] .many .area{opacity:.12}
.tools{display:flex;gap:.3rem;flex-basis:100%;justify-content:flex-end}
.tools button,.filter{font:inherit;font-size:.78rem;color:var(--mute);background:none;border:1px solid var(--line);border-radius:4px;padding:.05rem .45rem;cursor:pointer}
.tools button:hover{color:var(--fg);border-color:var(--mute)}.filter{cursor:text;margin-top:.6rem;width:min(16rem,100%)}
.sort{min-width:1.5rem;min-height:1.5rem;font:inherit;color:inherit;background:none;border:0;padding:0;margin:0;cursor:pointer;text-align:inherit}
[aria-sort=ascending] .sort::after{content:" ↑"}[aria-sort=descending] .sort::after{content:" ↓"}
.fit{stroke:var(--b);stroke-width:2;stroke-dasharray:8 4}.noise{stroke:var(--a);stroke-width:1.6;stroke-dasharray:2 3}
svg .band{fill:var(--band)}svg .late{fill:var(--late)}
.edge{stroke:var(--good);stroke-width:1;stroke-dasharray:4 3}.zero{stroke:var(--mute);stroke-width:1}
.event-a{stroke:var(--a);stroke-width:1;stroke-dasharray:1 3}.event-b{stroke:var(--b);stroke-width:1;stroke-dasharray:3 3}
.mean{stroke:var(--good);stroke-width:4}
.forest .row{display:grid;grid-template-columns:10.5rem 1fr 6.2rem 12.5rem;column-gap:.9rem;align-items:center;font-size:.88rem}
.forest .row>svg{width:100%;height:1.75rem;display:block}
.forest .value{text-align:right}.forest .remark{color:var(--mute);font-size:.82rem}
.forest .sum{font-weight:650;border-top:1px solid var(--line)}
.forest .axis{height:1.5rem}.ticks{grid-column:2;position:relative;height:100%;border-top:1px solid var(--mute);font-size:.76rem;color:var(--mute)}
.ticks span{position:absolute;top:.2rem;transform:translateX(-50%);white-space:nowrap}
.forest .xl{margin:.2rem 0 0;text-align:left}
.margin-mark{stroke:var(--good);stroke-width:1.6}svg .margin-area{fill:var(--band)}
.i95{stroke:var(--fg);stroke-width:1.3}.i90{stroke:var(--fg);stroke-width:4}
.dot{stroke:var(--fg);stroke-width:10;stroke-linecap:round}.dot-sum{stroke-linecap:square}
.k95,.k90{display:inline-block;width:1.3rem;background:var(--fg);height:1.3px}.k90{height:4px}
.km{display:inline-block;width:1.3rem;height:.7rem;background:var(--band);border:solid var(--good);border-width:0 2px}
.grid2{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:0 1.5rem}.grid2 .plot{grid-template-rows:9rem 1.4rem}
.cursor{grid-area:1/2;position:absolute;top:0;min-width:1px;max-width:100%;height:100%;background:var(--fg);opacity:.3;pointer-events:none}
.readout{display:block;min-height:1.3em;font-size:.8rem;color:var(--mute);text-align:center}
footer{margin-top:2.6rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--mute);font-size:.85rem}
@media (max-width:44rem){
main{padding:1.4rem 1rem 3rem}.sides{grid-template-columns:1fr}
.glance li{grid-template-columns:1.4rem 1fr}.glance li>:last-child{grid-column:2}
.legend{margin-left:0}.plot{grid-template-columns:3.6rem 1fr;grid-template-rows:12rem 1.4rem}.xl{margin-left:3.6rem}
.xs span:nth-child(even){display:none}
.forest .row{grid-template-columns:1fr auto;row-gap:0;padding:.3rem 0}
.forest .row>svg{grid-column:1/-1;grid-row:2}.forest .remark{grid-column:1/-1}
.forest .axis{padding:0}.ticks{grid-column:1/-1}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,tbody,tr,th,td{display:block}tbody tr{padding:.5rem 0;border-bottom:1px solid var(--line)}
tbody th,tbody td{border:0;padding:.1rem 0;text-align:left}tbody th{font-weight:650}
tbody td,.n+td:not(.n){display:flow-root;padding-left:9rem;min-height:1.6em}tbody td.n{white-space:normal;text-align:left;padding-left:9rem}
tbody td::before{content:attr(data-h);color:var(--mute);float:left;margin-left:-9rem;width:8.5rem}tbody td[data-h=""]{padding-left:0}tr.differs td,tr.differs th{background:none}}
@page{size:A4;margin:16mm}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--mute:#555;--line:#ccc;--soft:#f4f4f4;--a:#0072b2;--b:#d55e00;--good:#00674c;--warn:#8a5000;--bad:#a01010;--d:#000}
html{font-size:10pt}body{print-color-adjust:exact;-webkit-print-color-adjust:exact}main{max-width:none;padding:0}
section{margin-top:1.4rem;padding-top:1rem}figure,tr,.sides,.glance li{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}table{font-size:7.6pt}th,td{padding:.25rem .4rem .25rem 0}
.forest .row{grid-template-columns:8rem 1fr 5.2rem 10rem;font-size:9pt}.ticks span:nth-child(even){display:none}
.plot{grid-template-rows:11rem 1.4rem}.readout,.cursor,.tools,.filter{display:none}details:not(td details)::details-content{content-visibility:visible;block-size:auto}}
)css";
}

}  // namespace olmo::page
