import type { PlatformBackup } from "../../features/platform/platform.ts";
import type { Finding, lateNotifications } from "../../features/status/status.ts";
import type { EdgeStatus } from "../../ports/edge.ts";
import type { MissingPart } from "../../ports/runtime.ts";
import type { TaskStatus } from "../driver.ts";
import { about, listed, overall, spanText } from "./check.ts";
import { counted } from "../../kit/bytes-text.ts";

export interface OwnDatabase {
  readonly answeredInMs: number;
  readonly connections: number;
  readonly most: number;
  readonly isListening: boolean;
}

const slowMs = 1000;

/** Evaluates the control plane's own database. If it does not respond at all, nothing can be stored here; then `/readyz` and the log report it. */
export function evaluateOwnDatabase({ answeredInMs, connections, most, isListening }: OwnDatabase): Finding {
  const detail = `The database answers in ${Math.round(answeredInMs)} ms; ${connections} of ${most} connections are in use.`;
  const share = connections / most;
  const hint = "Raise max_connections, or run fewer control planes on it.";
  if (share >= 0.95) return overall("fail", detail, hint);
  if (share >= 0.8) return overall("warn", detail, hint);
  if (!isListening)
    return overall(
      "warn",
      `${detail} The database's notifications do not arrive, so work starts seconds late.`,
      "Berth opens the connection again. A connection pooler in between must use session mode.",
    );
  if (answeredInMs >= slowMs) return overall("warn", `${detail} That is slow.`, "Look at the machine's disk and load.");
  return overall("ok", detail);
}

/** Evaluates whether the edge responds, and whether it serves the routes that were current at the previous check. */
export function evaluateEdge(status: EdgeStatus, expectedVersion: number | null): Finding {
  if (!status.running) return edgeIsSilent;
  if (expectedVersion !== null && status.route_version < expectedVersion) {
    const detail = `The edge serves routes of version ${status.route_version}; version ${expectedVersion} was current at the last check.`;
    return overall("warn", detail, "The edge task sends the routes; see the check `reconcilers`.");
  }
  return overall(
    "ok",
    `The edge answers on ${status.listen ?? "its port"} with routes of version ${status.route_version}.`,
  );
}

export const edgeIsSilent = overall(
  "fail",
  "The edge does not respond: applications are not reachable.",
  "If it exited, Berth starts it again. If it hangs, kill its process. The control plane's log has the details.",
);

// A task is late once it exceeds three of its periods by a minute, which a large installation may need for one round.
const grace = { periods: 3, warnMs: 60_000, failMs: 300_000 };

/** Evaluates whether each of the control plane's tasks succeeded recently. `sinceMs` is how long the control plane has been running. */
export function evaluateTasks(tasks: readonly TaskStatus[], now: Date, sinceMs: number): readonly Finding[] {
  const bad = tasks.flatMap((task): Finding[] => {
    const ageMs = task.last_ok_at === null ? sinceMs : now.getTime() - Date.parse(task.last_ok_at);
    const lateMs = ageMs - grace.periods * task.period_ms;
    if (!task.failing && lateMs < grace.warnMs) return [];
    const span = spanText(ageMs / 1000);
    const problem = task.failing ? `fails; it last succeeded ${span} ago` : `has not finished for ${span}`;
    const status = lateMs >= grace.failMs ? "fail" : "warn";
    return [about(task.name, status, `The task ${task.name} ${problem}.`, "The control plane's log says why.")];
  });
  return listed(bad, { ok: `All ${tasks.length} tasks run on time.`, bad: "Tasks that fail or are late" });
}

const heartbeatMs = { warn: 15_000, fail: 60_000 };

export function evaluateScheduler(task: TaskStatus | undefined, now: Date, sinceMs: number): Finding {
  if (task === undefined) return overall("fail", "This control plane runs no scheduler.");
  const ageMs = task.last_ok_at === null ? sinceMs : now.getTime() - Date.parse(task.last_ok_at);
  const last = `The scheduler last ran ${spanText(ageMs / 1000)} ago`;
  if (ageMs < heartbeatMs.warn) return overall("ok", `${last}: ${task.detail}.`);
  const hint = "Cron jobs start late or not at all; the control plane's log has the reason.";
  return overall(ageMs >= heartbeatMs.fail ? "fail" : "warn", `${last}.`, hint);
}

/** Lists the parts of the isolation between projects that don't work on this machine. */
export function evaluateIsolation(missing: readonly MissingPart[]): readonly Finding[] {
  const bad = missing.map(({ part, effect, remedy }) => about(part, "warn", effect, remedy));
  return listed(bad, { ok: "Every part of the isolation works.", bad: "Missing parts of the isolation" });
}

const lateSeconds = 600;

/** Evaluates whether messages to the operator are delivered. */
export function evaluateNotifications(states: Awaited<ReturnType<typeof lateNotifications>>): readonly Finding[] {
  const bad = states.flatMap(({ notifier, waiting, given_up, seconds }): Finding[] => {
    const isLate = waiting > 0 && (seconds ?? 0) >= lateSeconds;
    if (!isLate && given_up === 0) return [];
    const detail = `Messages that wait for ${notifier}: ${waiting}, the oldest for ${spanText(seconds ?? 0)}; given up within the last hour: ${given_up}.`;
    const hint = "Approvals and alerts do not reach you this way. The control plane's log has the receiver's response.";
    return [about(notifier, given_up > 0 ? "fail" : "warn", detail, hint)];
  });
  return listed(bad, { ok: "Messages to the operator arrive.", bad: "Channels that do not deliver" });
}

const silenceSeconds = 180;

/** Lists machines whose control plane has gone silent; after a day of silence a machine is forgotten. */
export function evaluateControlPlanes(
  machines: readonly { readonly name: string; readonly seconds: number }[],
): readonly Finding[] {
  const silent = machines.filter(({ seconds }) => seconds >= silenceSeconds);
  const hint = "Start it again. If you removed it on purpose, this check forgets it after a day.";
  const bad = silent.map(({ name, seconds }) =>
    about(name, "fail", `The control plane on ${name} has not reported for ${spanText(seconds)}.`, hint),
  );
  return listed(bad, {
    ok: `${counted(machines.length, "control plane")} reported within the last ${spanText(silenceSeconds)}.`,
    bad: "Control planes that are silent",
  });
}

type Backup = Pick<PlatformBackup, "status" | "created_at" | "problem">;

/** Evaluates the backups of the platform itself, newest first, where one is due each day. */
export function evaluatePlatformBackups(backups: readonly Backup[], now: Date, oldMs: number): Finding {
  const [newest] = backups;
  const completed = backups.find(({ status }) => status === "completed");
  if (newest === undefined) return overall("ok", "The first backup of the platform is made in the next window.");
  if (newest.status === "failed")
    return overall("fail", `The newest backup of the platform failed. ${newest.problem ?? ""}`.trim(), backUpHint);
  if (newest.problem !== null)
    return overall("warn", `The newest backup of the platform is incomplete. ${newest.problem}`, backUpHint);
  const ageMs = completed === undefined ? 0 : now.getTime() - Date.parse(completed.created_at);
  const state = completed === undefined ? "being made" : `${spanText(ageMs / 1000)} old`;
  const detail = `The newest backup of the platform is ${state}.`;
  return ageMs > oldMs ? overall("fail", detail, backUpHint) : overall("ok", detail);
}

const backUpHint = "Remove the cause, then make one: `berth platform backup`.";
