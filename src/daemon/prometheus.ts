import { edgeFamilies, expositionText, storedFamilies, type Family } from "../features/metrics/metrics.ts";
import type { Driver } from "../reconcile/driver.ts";
import type { Platform } from "../reconcile/platform.ts";

/** Returns the text of `/metrics`: applications, the edge, the reconcilers and this process. */
export async function prometheusText(platform: Platform, reconcilers: Driver, version: string): Promise<string> {
  const [status, usages, stored] = await Promise.all([
    platform.ports.edge.observe(),
    platform.ports.edge.measure(),
    storedFamilies(platform.db),
  ]);
  const gauge = (name: string, help: string, value: number): Family => ({
    ...{ name, help, type: "gauge" },
    samples: [{ value }],
  });
  return expositionText([
    {
      ...{ name: "berth_info", type: "gauge", help: "The running version of Berth." },
      samples: [{ labels: { version }, value: 1 }],
    },
    gauge("berth_edge_up", "Whether the edge responds.", status.running ? 1 : 0),
    gauge("berth_wakeups_up", "Whether the database's notifications arrive.", platform.wakeups.isListening() ? 1 : 0),
    ...taskFamilies(reconcilers),
    ...processFamilies(gauge),
    ...(await edgeFamilies(platform.db, usages)),
    ...stored,
  ]);
}

function taskFamilies(reconcilers: Driver): Family[] {
  const tasks = reconcilers.status();
  const done = tasks.flatMap(({ name, last_ok_at }) => (last_ok_at === null ? [] : [{ name, at: last_ok_at }]));
  return [
    {
      ...{ name: "berth_task_failing", type: "gauge", help: "Whether the latest run of a reconciler's task failed." },
      samples: tasks.map(({ name, failing }) => ({ labels: { task: name }, value: failing ? 1 : 0 })),
    },
    {
      ...{ name: "berth_task_last_success_timestamp_seconds", type: "gauge", help: "When a task last succeeded." },
      samples: done.map(({ name, at }) => ({ labels: { task: name }, value: Date.parse(at) / 1000 })),
    },
  ];
}

function processFamilies(gauge: (name: string, help: string, value: number) => Family): Family[] {
  const { user, system } = process.cpuUsage();
  const seconds = (user + system) / 1e6;
  return [
    gauge("process_resident_memory_bytes", "Memory of the control plane.", process.memoryUsage.rss()),
    gauge("process_start_time_seconds", "When the control plane started.", Date.now() / 1000 - process.uptime()),
    {
      ...{ name: "process_cpu_seconds_total", type: "counter", help: "Processor time of the control plane." },
      samples: [{ value: seconds }],
    },
  ];
}
