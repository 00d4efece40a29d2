#include "store/database/schema.h"

#include "store/database/schema_ranks.h"

namespace olmo::store {

const char* const kMigrations[kSchemaVersion] = {R"sql(
CREATE TABLE runs (
  run_id            TEXT PRIMARY KEY,
  name              TEXT NOT NULL,
  created_utc       TEXT NOT NULL,
  status            TEXT NOT NULL CHECK (status IN ('running', 'finished', 'stopped', 'diverged', 'failed')),
  config            TEXT NOT NULL CHECK (json_valid(config)),  -- resolved; can be fed back to `train`
  experiment_digest TEXT NOT NULL,                             -- of the config without policy and paths
  seed              INTEGER NOT NULL,
  n_parameters      INTEGER NOT NULL,
  max_steps         INTEGER NOT NULL
) STRICT;

CREATE TABLE attempts (
  run_id       TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt      INTEGER NOT NULL,
  started_utc  TEXT NOT NULL,
  ended_utc    TEXT,
  outcome      TEXT,               -- finished, stopped, diverged, failed; NULL while running or after a crash
  start_step   INTEGER NOT NULL,   -- the last step that was already done
  resumed_from TEXT,               -- checkpoint path
  command_line TEXT NOT NULL,
  policy       TEXT NOT NULL CHECK (json_valid(policy)),       -- numerics, instruction set, threads, device
  build        TEXT NOT NULL CHECK (json_valid(build)),        -- revision, compiler, flags, library versions
  environment  TEXT NOT NULL CHECK (json_valid(environment)),  -- host, processor, memory, kernel, variables, Slurm ids
  PRIMARY KEY (run_id, attempt)
) STRICT;

CREATE TABLE inputs (
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  kind   TEXT NOT NULL,  -- tokens, label_mask, tokenizer, weights
  path   TEXT NOT NULL,
  bytes  INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run_id, kind, path)
) STRICT;

CREATE TABLE steps (
  run_id            TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  step              INTEGER NOT NULL,   -- 1-based optimizer step
  epoch             INTEGER NOT NULL,
  tokens            INTEGER NOT NULL,   -- seen so far
  lr                REAL NOT NULL,
  ce_loss           REAL NOT NULL,      -- sum over labels / (instances x sequence length), as OLMo reports it
  ce_loss_per_label REAL NOT NULL,      -- the true mean over labels
  z_loss            REAL,               -- NULL without softmax_auxiliary_loss
  loss              REAL NOT NULL,
  grad_norm         REAL NOT NULL,      -- before clipping
  max_grad_norm     REAL,               -- the limit that this step was clipped with
  clipping_rate     REAL,               -- share of parameters (ratio mode) or steps (0 or 1) that were clipped
  param_norm        REAL NOT NULL,      -- after the update
  masked_instances  INTEGER NOT NULL,   -- by the instance filter
  seconds           REAL NOT NULL,
  tokens_per_second REAL NOT NULL,
  mfu               REAL,               -- of the attempt's peak (environment.peak_flops)
  batch_hash        TEXT NOT NULL,
  chain_hash        TEXT NOT NULL,      -- over all steps so far
  PRIMARY KEY (run_id, attempt, step),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE metrics (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  name    TEXT NOT NULL,
  value   REAL,
  PRIMARY KEY (run_id, attempt, step, name),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE state_hashes (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  part    TEXT NOT NULL,  -- model or optim
  name    TEXT NOT NULL,  -- the parameter's; of optim KEY/PARAMETER, e.g. exp_avg/transformer.wte.weight
  sha256  TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt, step, part, name),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
  run_id        TEXT NOT NULL,
  attempt       INTEGER NOT NULL,
  step          INTEGER NOT NULL,
  path          TEXT NOT NULL,
  bytes         INTEGER NOT NULL,
  sha256        TEXT NOT NULL,     -- of the manifest, which holds every tensor's
  seconds       REAL NOT NULL,     -- until durable
  stall_seconds REAL NOT NULL,     -- during which training stood still
  created_utc   TEXT NOT NULL,
  deleted_utc   TEXT,
  PRIMARY KEY (run_id, attempt, step),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT;

CREATE TABLE events (
  event_id INTEGER PRIMARY KEY,
  run_id   TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt  INTEGER NOT NULL,
  step     INTEGER NOT NULL,
  utc      TEXT NOT NULL,
  kind     TEXT NOT NULL,
  message  TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_run ON events (run_id, event_id);

CREATE TABLE tags (
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  tag    TEXT NOT NULL,
  PRIMARY KEY (run_id, tag)
) STRICT;

-- The line of steps that led to the present weights: a later attempt that started before a step has replaced it.
CREATE VIEW surviving_steps AS
  SELECT s.* FROM steps s
  WHERE NOT EXISTS (SELECT 1 FROM attempts later
                    WHERE later.run_id = s.run_id AND later.attempt > s.attempt AND later.start_step < s.step);

-- How far is each run, how fast, how good?
CREATE VIEW run_overview AS
  SELECT r.run_id, r.name, r.status, r.created_utc, r.n_parameters, r.max_steps,
         (SELECT count(*) FROM attempts a WHERE a.run_id = r.run_id) AS attempts,
         last.step AS step, last.tokens AS tokens, last.ce_loss AS ce_loss, last.tokens_per_second AS tokens_per_second,
         last.chain_hash AS chain_hash,
         (SELECT group_concat(tag, ' ') FROM tags t WHERE t.run_id = r.run_id) AS tags
  FROM runs r
  LEFT JOIN surviving_steps last ON last.run_id = r.run_id
       AND last.step = (SELECT max(step) FROM surviving_steps s WHERE s.run_id = r.run_id);

-- The loss curve, smoothed over 20 steps.
CREATE VIEW loss_curve AS
  SELECT run_id, step, tokens, ce_loss,
         avg(ce_loss) OVER (PARTITION BY run_id ORDER BY step ROWS BETWEEN 19 PRECEDING AND CURRENT ROW) AS ce_loss_mean_20
  FROM surviving_steps;

-- What differs between the places that a run has been on?
CREATE VIEW attempt_hosts AS
  SELECT run_id, attempt, started_utc, ended_utc, outcome, start_step, json_extract(environment, '$.host') AS host,
         json_extract(environment, '$.cpu') AS cpu, json_extract(policy, '$.numerics') AS numerics,
         json_extract(policy, '$.threads') AS threads, json_extract(build, '$.git_revision') AS git_revision
  FROM attempts;

-- Which steps were the worst, and what did they see?
CREATE VIEW loss_spikes AS
  SELECT run_id, step, ce_loss, grad_norm, batch_hash, ce_loss - lag(ce_loss) OVER (PARTITION BY run_id ORDER BY step) AS jump
  FROM surviving_steps ORDER BY jump DESC;
)sql",
                                                 R"sql(
CREATE TABLE evaluations (
  evaluation_id    TEXT PRIMARY KEY,
  run_id           TEXT,              -- of the run that made it, or that its checkpoint names
  attempt          INTEGER,           -- of the run that made it
  step             INTEGER,
  created_utc      TEXT NOT NULL,
  ended_utc        TEXT,              -- NULL while running or after a crash
  status           TEXT NOT NULL CHECK (status IN ('running', 'finished', 'failed', 'interrupted')),
  checkpoint       TEXT NOT NULL,     -- path; empty: the weights in the memory of the run
  weights_digest   TEXT NOT NULL,     -- the same for equal weights in any container
  tokenizer_digest TEXT NOT NULL,
  content_key      TEXT NOT NULL,     -- equal keys: equal scores for equal tasks
  command_line     TEXT NOT NULL,
  settings         TEXT NOT NULL CHECK (json_valid(settings)),
  policy           TEXT NOT NULL CHECK (json_valid(policy)),
  build            TEXT NOT NULL CHECK (json_valid(build)),
  environment      TEXT NOT NULL CHECK (json_valid(environment))
) STRICT;
CREATE INDEX evaluations_by_content ON evaluations (content_key, created_utc);
CREATE INDEX evaluations_of_run ON evaluations (run_id, step);

CREATE TABLE evaluation_tasks (
  evaluation_id     TEXT NOT NULL REFERENCES evaluations ON DELETE CASCADE,
  task              TEXT NOT NULL,
  kind              TEXT NOT NULL CHECK (kind IN ('rank_classification', 'perplexity')),
  convention        TEXT NOT NULL,
  definition_digest TEXT NOT NULL,   -- of what decides the requests
  data_digest       TEXT NOT NULL,   -- of the data set's files
  primary_metric    TEXT NOT NULL,
  status            TEXT NOT NULL CHECK (status IN ('running', 'finished', 'failed', 'skipped')),
  message           TEXT NOT NULL,   -- why it failed or was skipped
  PRIMARY KEY (evaluation_id, task)
) STRICT;

CREATE TABLE evaluation_options (
  evaluation_id            TEXT NOT NULL,
  task                     TEXT NOT NULL,
  doc_id                   INTEGER NOT NULL,   -- place of the instance in its split, from 0
  cont_id                  INTEGER NOT NULL,
  native_id                TEXT NOT NULL,
  label                    INTEGER NOT NULL,   -- cont_id of the right continuation
  ctx_tokens               INTEGER NOT NULL,
  cont_tokens              INTEGER NOT NULL,
  cont_chars               INTEGER NOT NULL,
  cont_bytes               INTEGER NOT NULL,
  truncated_tokens         INTEGER NOT NULL,   -- of the context, cut from the left
  request_hash             TEXT NOT NULL,      -- SHA-256 of context, zero byte, continuation
  logprob                  REAL,               -- summed, nats
  is_greedy                INTEGER NOT NULL,
  unconditional_logprob    REAL,
  unconditional_logit_sum  REAL,
  rank                     INTEGER NOT NULL,   -- 1: chosen, by the primary metric
  margin                   REAL,               -- primary score minus that of the best other one
  PRIMARY KEY (evaluation_id, task, doc_id, cont_id),
  FOREIGN KEY (evaluation_id, task) REFERENCES evaluation_tasks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluation_documents (
  evaluation_id  TEXT NOT NULL,
  task           TEXT NOT NULL,      -- the suite
  document_index INTEGER NOT NULL,   -- within the suite, from 0
  source         TEXT NOT NULL,
  subdomain      TEXT NOT NULL,
  document       TEXT NOT NULL,      -- its id, else FILE#LINE
  windows        INTEGER NOT NULL,
  tokens         INTEGER NOT NULL,   -- scored
  bytes          INTEGER NOT NULL,   -- UTF-8
  chars          INTEGER NOT NULL,
  words          INTEGER NOT NULL,
  text_hash      TEXT NOT NULL,
  nll            REAL,               -- summed, nats
  PRIMARY KEY (evaluation_id, task, document_index),
  FOREIGN KEY (evaluation_id, task) REFERENCES evaluation_tasks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluation_metrics (
  evaluation_id  TEXT NOT NULL,
  task           TEXT NOT NULL,
  scope          TEXT NOT NULL,      -- empty: the whole; else source=…, source=…/subdomain=…, macro, …
  metric         TEXT NOT NULL,
  value          REAL,
  standard_error REAL,
  low            REAL,               -- 95 % interval
  high           REAL,
  n              INTEGER NOT NULL,   -- instances or documents
  PRIMARY KEY (evaluation_id, task, scope, metric),
  FOREIGN KEY (evaluation_id, task) REFERENCES evaluation_tasks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The latest score of each task on each checkpoint, by its primary metric.
CREATE VIEW evaluation_overview AS
  SELECT task, checkpoint, run_id, step, convention, primary_metric AS metric, value, standard_error, low, high, n,
         created_utc, evaluation_id, weights_digest
  FROM (SELECT e.*, t.task, t.convention, t.primary_metric, m.value, m.standard_error, m.low, m.high, m.n,
               row_number() OVER (PARTITION BY t.task, t.convention, e.weights_digest, e.checkpoint, e.run_id, e.step
                                  ORDER BY e.created_utc DESC, e.evaluation_id DESC) AS age
        FROM evaluations e
        JOIN evaluation_tasks t ON t.evaluation_id = e.evaluation_id AND t.status = 'finished'
        JOIN evaluation_metrics m ON m.evaluation_id = t.evaluation_id AND m.task = t.task AND m.scope = ''
             AND m.metric = t.primary_metric)
  WHERE age = 1;

-- How does each task go along a run?
CREATE VIEW evaluation_curve AS
  SELECT e.run_id, e.step, m.task, m.metric, m.value, m.standard_error, m.n, e.evaluation_id
  FROM evaluations e JOIN evaluation_metrics m ON m.evaluation_id = e.evaluation_id
  WHERE e.run_id IS NOT NULL AND m.scope = '';

-- What was chosen for each instance, and was it right? Two evaluations joined on task and doc_id show the flips.
CREATE VIEW evaluation_choices AS
  SELECT evaluation_id, task, doc_id, native_id, label, cont_id AS chosen, cont_id = label AS correct, margin
  FROM evaluation_options WHERE rank = 1;
)sql",
                                                 R"sql(
-- Steps of a run that another trainer made (`runs import`); what its log does not tell is NULL.
CREATE TABLE imported_steps (
  run_id            TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  step              INTEGER NOT NULL,
  tokens            INTEGER,          -- seen so far
  ce_loss           REAL,             -- NULL: not finite in the log
  grad_norm         REAL,
  lr                REAL,
  seconds           REAL,
  tokens_per_second REAL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- What a sensor measured over an attempt. Absent sensors are a row without joules and with a note.
CREATE TABLE energy (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  source  TEXT NOT NULL,     -- nvml, rocm_smi, rapl, pm_counters, slurm
  device  TEXT NOT NULL,     -- gpu0, package-0, node, job
  covers  TEXT NOT NULL,     -- device, package, node, job
  joules  REAL,              -- since the attempt began; NULL: not measured
  seconds REAL,              -- that the joules span
  samples INTEGER NOT NULL,
  note    TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt, source, device),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE power_samples (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  seconds REAL NOT NULL,     -- monotonic, since the attempt began
  source  TEXT NOT NULL,
  device  TEXT NOT NULL,
  watts   REAL NOT NULL,     -- mean since the sample before
  PRIMARY KEY (run_id, attempt, source, device, seconds),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- How far is each run, ours or imported, how fast, how good?
DROP VIEW run_overview;
CREATE VIEW run_overview AS
  SELECT r.run_id, r.name, r.status, r.created_utc, r.n_parameters, r.max_steps,
         (SELECT count(*) FROM attempts a WHERE a.run_id = r.run_id) AS attempts,
         coalesce(last.step, imported.step) AS step, coalesce(last.tokens, imported.tokens) AS tokens,
         coalesce(last.ce_loss, imported.ce_loss) AS ce_loss,
         coalesce(last.tokens_per_second, imported.tokens_per_second) AS tokens_per_second,
         last.chain_hash AS chain_hash,
         (SELECT group_concat(tag, ' ') FROM tags t WHERE t.run_id = r.run_id) AS tags
  FROM runs r
  LEFT JOIN surviving_steps last ON last.run_id = r.run_id
       AND last.step = (SELECT max(step) FROM surviving_steps s WHERE s.run_id = r.run_id)
  LEFT JOIN imported_steps imported ON imported.run_id = r.run_id
       AND imported.step = (SELECT max(step) FROM imported_steps s WHERE s.run_id = r.run_id);
)sql",
                                                 R"sql(
-- Over the hash chain and all hashes of a state, so that none can be altered alone.
CREATE TABLE state_seals (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  sha256  TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt, step),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Output of every operation of a traced step, in the order of the computation: recorded by `train`
-- (attempt) or by `audit --record` (audit).
CREATE TABLE op_traces (
  run_id    TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt   INTEGER NOT NULL,   -- of the training; 0: of an audit
  audit     INTEGER NOT NULL,   -- of the audit; 0: of the training
  step      INTEGER NOT NULL,
  ordinal   INTEGER NOT NULL,   -- from 0, in the order of the computation
  operation TEXT NOT NULL,      -- e.g. micro_batch.0/forward/blocks.3.attention
  sha256    TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt, audit, step, ordinal)
) STRICT, WITHOUT ROWID;

-- Stretches of the run that were trained again, here or elsewhere, and compared with the record.
CREATE TABLE audits (
  run_id             TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  audit              INTEGER NOT NULL,   -- 1, 2, ...
  created_utc        TEXT NOT NULL,
  command_line       TEXT NOT NULL,
  policy             TEXT NOT NULL CHECK (json_valid(policy)),       -- of the auditor, as are build and environment
  build              TEXT NOT NULL CHECK (json_valid(build)),
  environment        TEXT NOT NULL CHECK (json_valid(environment)),
  started_from       TEXT NOT NULL,      -- checkpoint, or initial weights
  first_step         INTEGER NOT NULL,   -- of the steps that were compared
  last_step          INTEGER NOT NULL,
  verdict            TEXT NOT NULL CHECK (verdict IN ('identical', 'within_envelope', 'different')),
  difference_step    INTEGER,            -- the first that differs
  difference         TEXT NOT NULL,      -- what differs there: a column of steps, or a tensor; empty: nothing
  operation          TEXT NOT NULL,      -- first operation that differs there; empty: none, or not traced
  ce_loss_distance   REAL,               -- largest |recorded - portable recomputation| over the stretch
  grad_norm_distance REAL,               -- the same, relative to the recomputation
  PRIMARY KEY (run_id, audit)
) STRICT;
)sql",
                                                 R"sql(
-- An import may tell tokens and no step: then its tokens are the position.
DROP VIEW run_overview;
ALTER TABLE imported_steps RENAME COLUMN step TO position;
ALTER TABLE imported_steps ADD COLUMN step INTEGER;                        -- NULL: unknown
ALTER TABLE imported_steps ADD COLUMN tokens_per_second_per_device REAL;   -- tokens_per_second is the whole run's
UPDATE imported_steps SET step = position;

CREATE VIEW run_overview AS
  SELECT r.run_id, r.name, r.status, r.created_utc, r.n_parameters, nullif(r.max_steps, 0) AS max_steps,
         (SELECT count(*) FROM attempts a WHERE a.run_id = r.run_id) AS attempts,
         coalesce(last.step, imported.step) AS step, coalesce(last.tokens, imported.tokens) AS tokens,
         coalesce(last.ce_loss, imported.ce_loss) AS ce_loss,
         coalesce(last.tokens_per_second, imported.tokens_per_second) AS tokens_per_second,
         last.chain_hash AS chain_hash,
         (SELECT group_concat(tag, ' ') FROM tags t WHERE t.run_id = r.run_id) AS tags
  FROM runs r
  LEFT JOIN surviving_steps last ON last.run_id = r.run_id
       AND last.step = (SELECT max(step) FROM surviving_steps s WHERE s.run_id = r.run_id)
  LEFT JOIN imported_steps imported ON imported.run_id = r.run_id
       AND imported.position = (SELECT max(position) FROM imported_steps s WHERE s.run_id = r.run_id);

-- Over what an evaluation is of and all its rows, so that none can be altered alone.
CREATE TABLE evaluation_seals (
  evaluation_id TEXT NOT NULL REFERENCES evaluations ON DELETE CASCADE,
  task          TEXT NOT NULL,   -- empty: over the seals of all tasks
  sha256        TEXT NOT NULL,
  PRIMARY KEY (evaluation_id, task)
) STRICT, WITHOUT ROWID;

-- The latest score of each task on each checkpoint, by its primary metric; latest as recorded, whatever the clock said.
DROP VIEW evaluation_overview;
CREATE VIEW evaluation_overview AS
  SELECT task, checkpoint, run_id, step, convention, primary_metric AS metric, value, standard_error, low, high, n,
         created_utc, evaluation_id, weights_digest
  FROM (SELECT e.*, t.task, t.convention, t.primary_metric, m.value, m.standard_error, m.low, m.high, m.n,
               row_number() OVER (PARTITION BY t.task, t.convention, e.weights_digest, e.checkpoint, e.run_id, e.step
                                  ORDER BY e.rowid DESC) AS age
        FROM evaluations e
        JOIN evaluation_tasks t ON t.evaluation_id = e.evaluation_id AND t.status = 'finished'
        JOIN evaluation_metrics m ON m.evaluation_id = t.evaluation_id AND m.task = t.task AND m.scope = ''
             AND m.metric = t.primary_metric)
  WHERE age = 1;
)sql",
                                                 R"sql(
ALTER TABLE runs ADD COLUMN chain_format INTEGER NOT NULL DEFAULT 1;   -- of the hash chain: core/hash_chain.h
ALTER TABLE steps ADD COLUMN loss_hash TEXT;   -- over the losses of the micro-batches; NULL in chains of format 1
)sql",
                                                 R"sql(
-- What differences count as none, fixed before another run was compared with this one (`report declare`).
CREATE TABLE declarations (
  run_id      TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  declaration INTEGER NOT NULL,   -- 1, 2, ...
  created_utc TEXT NOT NULL,
  who         TEXT NOT NULL,
  margins     TEXT NOT NULL,      -- as --margin takes them: loss=0.01,macro=0.5
  record      TEXT NOT NULL,      -- hash chain of the run at that time; of an import the number of its rows
  sha256      TEXT NOT NULL,      -- over these and the declaration before
  PRIMARY KEY (run_id, declaration)
) STRICT, WITHOUT ROWID;
)sql", kRanksSchema,
                                                 R"sql(
-- Over all of a step's trace, so that none of it can be altered alone (store/runs/op_traces.h).
CREATE TABLE trace_seals (
  run_id  TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt INTEGER NOT NULL,   -- attempt, audit and step as in op_traces
  audit   INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  sha256  TEXT,               -- NULL: traced by a version that sealed none
  PRIMARY KEY (run_id, attempt, audit, step)
) STRICT, WITHOUT ROWID;
INSERT INTO trace_seals SELECT DISTINCT run_id, attempt, audit, step, NULL FROM op_traces;
)sql",
                                                 R"sql(
ALTER TABLE attempts ADD COLUMN start_link TEXT;  -- hash chain of the state after start_step, which it began from; NULL: not recorded
-- Over all rows that an attempt has in a table, so that none can be altered alone (store/runs/run_seals.h).
CREATE TABLE run_seals (
  run_id  TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
  attempt INTEGER NOT NULL,   -- of the run's own row and its inputs 1
  part    TEXT NOT NULL,      -- a table; empty: nothing of the attempt is sealed, as an older version made it or its rows could not be read back
  rows    INTEGER NOT NULL,   -- that the seal is over: of events the first
  sha256  TEXT,               -- NULL with an empty part
  PRIMARY KEY (run_id, attempt, part)
) STRICT, WITHOUT ROWID;
INSERT INTO run_seals SELECT run_id, attempt, '', 0, NULL FROM attempts;
)sql",
                                                 R"sql(
-- Where in the data an attempt began (core/data_position.h); NULL: not recorded, then a run began with the first
-- instance of its epoch.
ALTER TABLE attempts ADD COLUMN start_epoch INTEGER;
ALTER TABLE attempts ADD COLUMN start_instance INTEGER;
)sql"};

}  // namespace olmo::store
