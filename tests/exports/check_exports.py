#!/usr/bin/env python3
"""Opens what `olmo-harness runs export` writes with the tools that it is written for.

    check_exports.py OLMO_HARNESS CONFIG

It trains CONFIG (configs/train/tiny.json) for eight steps, with a stop and a resume. Each tool that is installed (pip install tensorboard
mlflow-skinny trackio wandb; tried with tensorboard 2.21.0, mlflow-skinny 3.17.2, trackio 0.43.0, wandb 0.19.11) must find the run's losses
and config as `runs export --table steps` and `runs show` tell them. Exit code 77 if none of the tools is installed, 1 if one finds something else.
"""
import array, glob, importlib.util, json, os, subprocess, sys, tempfile

harness, config = sys.argv[1:]
LOSS = "train/CrossEntropyLoss"


def run(*words):
    return subprocess.run([harness, *words], check=True, capture_output=True, text=True).stdout


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected!r:.500}, found {found!r:.500}")


scene = tempfile.TemporaryDirectory()
tokens, folder = os.path.join(scene.name, "tokens.npy"), os.path.join(scene.name, "a run")
with open(tokens, "wb") as file:
    file.write(array.array("H", [i * 2654435761 % 2**32 // 65536 % 499 for i in range(64 * 32)]).tobytes())
train = [harness, "train", config, f"data.paths=[{tokens}]", "threads=1", "stop_at=8", "--run-dir", folder]
subprocess.run([*train, "stop_after=3"], capture_output=True)
subprocess.run([*train, "--resume", "latest"], check=True, capture_output=True)
database = os.path.join(folder, "run.db")

shown = json.loads(run("runs", "show", database, "--json"))
steps = [json.loads(line) for line in run("runs", "export", database, "--table", "steps").splitlines()]
losses = {row["step"]: row["ce_loss"] for row in steps}
layers = shown["config"]["model"]["n_layers"]


def tensorboard(folder):
    import numpy
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
    (run_folder,) = os.listdir(folder)
    events = EventAccumulator(os.path.join(folder, run_folder), size_guidance={"scalars": 0})
    events.Reload()
    scalars = events.Scalars(LOSS)
    expect("losses", {e.step: e.value for e in scalars}, {s: float(numpy.float32(v)) for s, v in losses.items()})
    times = [e.wall_time for e in scalars]
    expect("times ascend", times, sorted(times))
    start = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = plugin_data_pb2.HParamsPluginData.FromString(start).session_start_info.hparams
    expect("n_layers", hparams["model.n_layers"].number_value, layers)
    text = events.Tensors("config")[0].tensor_proto.string_val[0].decode()
    expect("the config's text", f"| model.n_layers | {layers} |" in text, True)


def mlflow(folder):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # of MLflow 3
    from mlflow.tracking import MlflowClient
    client = MlflowClient(tracking_uri="file://" + folder)
    experiment = client.get_experiment_by_name("check")
    (found,) = client.search_runs([experiment.experiment_id])
    expect("name", found.info.run_name, shown["name"])
    expect("status", found.info.status, "FINISHED")
    expect("n_layers", found.data.params["model.n_layers"], str(layers))
    history = client.get_metric_history(found.info.run_id, LOSS)
    expect("losses", {m.step: m.value for m in history}, losses)


def trackio(folder):
    os.environ["TRACKIO_DIR"] = folder
    from trackio.api import Api
    from trackio.sqlite_storage import SQLiteStorage
    (found,) = list(Api().runs("check"))
    expect("name", found.name, shown["name"])
    expect("n_layers", found.config["model"]["n_layers"], layers)
    logs = SQLiteStorage.get_logs("check", found.name)
    expect("losses", {row["step"]: row[LOSS] for row in logs if LOSS in row}, losses)


def wandb_records(path):
    """The records of a .wandb file: read by W&B's own reader where the package has it in Python (before 0.20)."""
    from wandb.proto.wandb_internal_pb2 import Record
    import wandb
    wandb._assert_is_internal_process = True
    from wandb.sdk.internal.datastore import DataStore
    store = DataStore()
    store.open_for_scan(path)
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        yield record


def wandb(folder):
    (path,) = glob.glob(os.path.join(folder, "offline-run-*", "run-*.wandb"))
    if importlib.util.find_spec("wandb.sdk.internal.datastore") is None:
        print("wandb: this version reads the file only to send it: install wandb==0.19.11 to have it read here")
        return False
    records = list(wandb_records(path))
    expect("record types", [r.WhichOneof("record_type") for r in records[:2] + records[-3:]],
           ["header", "run", "summary", "exit", "footer"])
    config = {item.key: json.loads(item.value_json) for item in records[1].run.config.update}
    expect("n_layers", config["model"]["n_layers"], layers)
    expect("name", records[1].run.display_name, shown["name"])
    found = {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            row = {item.key: json.loads(item.value_json) for item in record.history.item}
            if LOSS in row:
                found[row["_step"]] = row[LOSS]
    expect("losses", found, losses)


checked = 0
for tool in (tensorboard, mlflow, trackio, wandb):
    if importlib.util.find_spec(tool.__name__) is None:
        print(f"{tool.__name__}: not installed, not checked")
        continue
    with tempfile.TemporaryDirectory() as folder:
        project = [] if tool is tensorboard else ["--project", "check"]
        for _ in range(2):  # the second takes the place of the first
            run("runs", "export", database, "--to", tool.__name__, *project, folder)
        if tool(folder) is False:
            continue
    print(f"{tool.__name__}: sound")
    checked += 1
sys.exit(0 if checked else 77)
