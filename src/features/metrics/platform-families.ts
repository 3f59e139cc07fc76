import { createHash } from "node:crypto";
import { sql } from "kysely";
import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";
import type { Db } from "../../store/database.ts";
import type { Family, Sample } from "./exposition.ts";

type Labels = Readonly<Record<string, string>>;

/** Returns the edges' counts per project and counter. A restarted edge gets series of its own, so sums and rates stay right. */
export async function edgeFamilies(db: Db, usages: readonly EdgeUsage[]): Promise<readonly Family[]> {
  const names = await projectLabels(db);
  const known = usages.flatMap((usage) => {
    const labels = names.get(usage.project_id);
    return labels === undefined ? [] : [{ usage, labels: { ...labels, edge: shortName(usage.counter) } }];
  });
  const counter = (name: string, help: string, pick: (usage: EdgeUsage) => number): Family => ({
    ...{ name, help, type: "counter" },
    samples: known.map(({ usage, labels }) => ({ labels, value: pick(usage) })),
  });
  return [
    {
      ...{ name: "berth_project_requests_total", type: "counter", help: "Requests by class of their response status." },
      samples: known.flatMap(({ usage, labels }) =>
        Object.entries(usage.by_class).map(([digit, value]) => ({ labels: { ...labels, class: `${digit}xx` }, value })),
      ),
    },
    {
      ...{
        name: "berth_project_latency_seconds",
        type: "histogram",
        help: "Time from a request to the head of its response.",
      },
      samples: known.flatMap(({ usage, labels }) => histogram(usage, labels)),
    },
    counter("berth_project_received_bytes_total", "Bytes of request bodies.", (usage) => usage.bytes_in),
    counter("berth_project_sent_bytes_total", "Bytes of response bodies.", (usage) => usage.bytes_out),
  ];
}

/** Shortens a counter's name by hashing it; HAProxy workers' names differ only at the end, so a prefix would not be unique. */
function shortName(counter: string): string {
  return createHash("sha256").update(counter).digest("hex").slice(0, 8);
}

function histogram(usage: EdgeUsage, labels: Labels): Sample[] {
  const bounds = [...latencyBucketsMs.map((bound) => String(bound / 1000)), "+Inf"];
  return [
    ...usage.latency_buckets.map((value, index) => ({
      suffix: "_bucket",
      labels: { ...labels, le: bounds[index] ?? "+Inf" },
      value,
    })),
    { suffix: "_sum", labels, value: usage.latency_sum_ms / 1000 },
    { suffix: "_count", labels, value: usage.requests },
  ];
}

interface StoredRow {
  readonly project_id: string;
  readonly process: string;
  readonly replica: number;
  readonly deployment: number;
  readonly memory_bytes: number;
  readonly cpu_seconds: number;
  readonly processes: number;
  readonly restarts: number;
}

/** Returns the stored measurements of active deployments' replicas and of first-page probes, from all control planes. */
export async function storedFamilies(db: Db): Promise<readonly Family[]> {
  const names = await projectLabels(db);
  const { rows } = await sql<StoredRow>`
    select u.project_id, u.process, u.ordinal as replica, d.number as deployment, u.memory_bytes, u.cpu_seconds, u.processes,
      coalesce(r.crashes, 0) as restarts
    from replica_usage u join deployment d on d.id = u.deployment_id and d.status = 'active'
    left join replica r on r.deployment_id = u.deployment_id and r.process = u.process and r.ordinal = u.ordinal
    where u.measured_at > now() - interval '5 minutes'`.execute(db);
  const { rows: pages } = await sql<{
    project_id: string;
    up: number;
    total_ms: number | null;
    storage_bytes: number | null;
  }>`
    select l.project_id, case when l.failure is null then 1 else 0 end as up, l.total_ms, s.storage_bytes
    from page_look l left join disk_use s on s.project_id = l.project_id
    where l.looked_at > now() - interval '1 hour'`.execute(db);
  const ofReplicas = (name: string, type: Family["type"], help: string, pick: (row: StoredRow) => number): Family => ({
    ...{ name, type, help },
    samples: rows.map((row) => ({
      labels: { ...names.get(row.project_id), deployment: row.deployment, process: row.process, replica: row.replica },
      value: pick(row),
    })),
  });
  const ofPages = (name: string, help: string, pick: (row: (typeof pages)[number]) => number | null): Family => ({
    ...{ name, type: "gauge", help },
    samples: pages.flatMap((row) => {
      const value = pick(row);
      return value === null ? [] : [{ labels: names.get(row.project_id) ?? {}, value }];
    }),
  });
  return [
    ofReplicas("berth_replica_memory_bytes", "gauge", "Memory of a replica.", (row) => row.memory_bytes),
    ofReplicas("berth_replica_cpu_seconds_total", "counter", "Processor time of a replica.", (row) => row.cpu_seconds),
    ofReplicas("berth_replica_processes", "gauge", "Processes of a replica.", (row) => row.processes),
    ofReplicas(
      "berth_replica_restarts_total",
      "counter",
      "Restarts of a replica after crashes.",
      (row) => row.restarts,
    ),
    ofPages("berth_page_up", "Whether the latest probe of the first page got a status below 500.", (row) => row.up),
    ofPages("berth_page_seconds", "How long the latest probe took.", (row) =>
      row.total_ms === null ? null : row.total_ms / 1000,
    ),
    ofPages("berth_storage_bytes", "Disk space that the storage folder uses.", (row) => row.storage_bytes),
  ];
}

async function projectLabels(db: Db): Promise<ReadonlyMap<string, Labels>> {
  const { rows } = await sql<{ id: string; project: string; org: string }>`
    select p.id, p.slug as project, o.slug as org from project p join organization o on o.id = p.org_id
    where p.purged_at is null`.execute(db);
  return new Map(rows.map(({ id, ...labels }) => [id, labels]));
}
