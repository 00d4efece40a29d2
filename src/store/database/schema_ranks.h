// The step to schema version 8: who trained, where the time of steps went, and the hosts of energy.
#pragma once

namespace olmo::store {

inline constexpr char kRanksSchema[] = R"sql(
-- Several processes may train one run. NULL: of a time before ranks, or of another trainer.
ALTER TABLE attempts ADD COLUMN world_size INTEGER;   -- ranks
ALTER TABLE attempts ADD COLUMN strategy TEXT;        -- single, ddp, or fsdp with its sharding strategy
ALTER TABLE attempts ADD COLUMN launch TEXT;          -- what started the ranks: alone, nproc, torchrun, srun, mpirun

-- The processes of an attempt, and what each did of it so far: seconds and bytes are sums over its steps.
CREATE TABLE ranks (
  run_id           TEXT NOT NULL,
  attempt          INTEGER NOT NULL,
  rank             INTEGER NOT NULL,
  host             TEXT NOT NULL,
  local_rank       INTEGER NOT NULL,   -- among the ranks of the host
  pid              INTEGER NOT NULL,
  device           TEXT NOT NULL,      -- as the policy names it: cpu, cuda, rocm
  processor        TEXT NOT NULL,      -- model of the device, of the CPU where there is no other
  threads          INTEGER NOT NULL,
  steps            INTEGER NOT NULL,
  data_seconds     REAL NOT NULL,      -- reading batches
  compute_seconds  REAL NOT NULL,      -- all that is in no other column
  gather_seconds   REAL NOT NULL,      -- waited for weights, losses and norms of other ranks
  exchange_seconds REAL NOT NULL,      -- waited for gradients of other ranks
  save_seconds     REAL NOT NULL,      -- training stood still for a checkpoint
  wait_seconds     REAL NOT NULL,      -- waited for all ranks to end the step
  gathered_bytes   INTEGER NOT NULL,   -- sent to other ranks by collectives that gather or broadcast
  exchanged_bytes  INTEGER NOT NULL,   -- by those that exchange
  slowest_steps    INTEGER NOT NULL,   -- steps in which its own work (data and compute) took longest
  PRIMARY KEY (run_id, attempt, rank),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Where the time of the steps first_step..last_step went: seconds of a step, as a mean over the steps. One row for
-- each phase and minute, whatever the number of ranks.
CREATE TABLE phases (
  run_id     TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step  INTEGER NOT NULL,
  phase      TEXT NOT NULL,      -- data, compute, gather, exchange, save, wait, as in ranks
  mean       REAL NOT NULL,      -- over the ranks
  least      REAL NOT NULL,
  most       REAL NOT NULL,
  rank       INTEGER NOT NULL,   -- that had the most
  PRIMARY KEY (run_id, attempt, first_step, phase),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The sensors of several hosts. An empty host: that of the attempt's environment.
ALTER TABLE energy RENAME TO energy_before_hosts;
CREATE TABLE energy (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  host    TEXT NOT NULL,     -- whose sensor it is
  source  TEXT NOT NULL,     -- nvml, rocm_smi, rapl, pm_counters, slurm
  device  TEXT NOT NULL,     -- gpu0, package-0, node, job
  covers  TEXT NOT NULL,     -- device, package, node, job
  joules  REAL,              -- since the attempt began; NULL: not measured
  seconds REAL,              -- that the joules span
  samples INTEGER NOT NULL,
  note    TEXT NOT NULL,
  PRIMARY KEY (run_id, attempt, host, source, device),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO energy
  SELECT run_id, attempt, '', source, device, covers, joules, seconds, samples, note FROM energy_before_hosts;
DROP TABLE energy_before_hosts;

ALTER TABLE power_samples RENAME TO power_samples_before_hosts;
CREATE TABLE power_samples (
  run_id  TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  host    TEXT NOT NULL,
  source  TEXT NOT NULL,
  device  TEXT NOT NULL,
  seconds REAL NOT NULL,     -- monotonic, since the attempt began
  watts   REAL NOT NULL,     -- mean since the sample before
  PRIMARY KEY (run_id, attempt, host, source, device, seconds),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO power_samples
  SELECT run_id, attempt, '', source, device, seconds, watts FROM power_samples_before_hosts;
DROP TABLE power_samples_before_hosts;

DROP VIEW attempt_hosts;
CREATE VIEW attempt_hosts AS
  SELECT a.run_id, a.attempt, a.started_utc, a.ended_utc, a.outcome, a.start_step,
         coalesce(r.host, json_extract(a.environment, '$.host')) AS host,
         coalesce(r.processor, json_extract(a.environment, '$.cpu')) AS cpu, count(r.rank) AS ranks,
         json_extract(a.policy, '$.numerics') AS numerics, json_extract(a.policy, '$.threads') AS threads,
         json_extract(a.build, '$.git_revision') AS git_revision
  FROM attempts a LEFT JOIN ranks r ON r.run_id = a.run_id AND r.attempt = a.attempt
  GROUP BY a.run_id, a.attempt, r.host;
)sql";

}  // namespace olmo::store
