import type { CrashRow } from "../../features/replicas/replicas.ts";
import type { Failure, Stage } from "../../ports/failure.ts";
import type { ListeningPort, OneOffResult } from "../../ports/runtime.ts";
import type { ProbeResult } from "../probe-health.ts";

/** Every way in which a deployment can fail after its build, each with a hint. */
const releaseFailures = {
  release_failed: "The command's output shows the reason. No traffic was switched: correct the command and push again.",
  copy_failed:
    "Try again. If the error persists, check the project's backups and disk limits, or let a person deploy whose token is not in approval mode.",
  rehearsal_failed:
    'The command\'s output on the copy is above. Correct the command and push again; `"rehearse": "never"` in berth.json runs it on the data at once.',
  approval_required: "Wait for a person's decision, then deploy the same commit again.",
  approval_denied: "Change the release command, or ask the person who denied it.",
  release_timeout: "Make the release command faster, or run long work outside the deploy.",
  crash_on_boot:
    "The application's output shows the reason. Try the start command with the same variables on your machine.",
  exited_on_boot:
    "The process must keep running, and `web` must listen on $PORT. Check the Procfile or the start script.",
  out_of_memory: "Use less memory during the start, or ask the operator for a higher limit.",
  wrong_port:
    "Listen on the port in the PORT variable and on 0.0.0.0, or set the project's port with `berth projects settings --port`.",
  not_listening:
    "Listen on the port in the PORT variable and on 0.0.0.0. If the application needs longer to start, give it the time: `berth projects settings --start-seconds 180`.",
  image_missing: "Build the commit again.",
  runtime_unavailable: "Try again when the platform's status shows no missing part.",
  health_check_failed:
    "Make the health path respond with a status from 200 to 399 (without a health path: any status below 500).",
  health_check_timeout:
    "The application accepted the connection but did not answer in time. Look for work that blocks requests during the start.",
  health_check_broken:
    "The application closed the connection without an HTTP answer. Check that it listens on $PORT on 0.0.0.0, and serves plain HTTP, not HTTPS.",
  image_check_failed:
    "Make the Dockerfile's HEALTHCHECK succeed as the project's user and with the port in PORT, or set a health path, which replaces it: `berth projects settings --health-path /healthz`.",
  project_deleted: "Undelete the project and deploy again.",
  org_suspended: "Ask the platform's operator to enable the organization, then deploy again.",
  token_ended: "Deploy again with a valid token.",
  edge_unavailable: "Push again once the platform's status shows a running edge. If that takes long, ask the operator.",
  platform_fault: "Try again. If the error persists, ask the operator to look at the log.",
} as const;

export type ReleaseFailureCode = keyof typeof releaseFailures;

export function releaseFailure(stage: Stage, code: ReleaseFailureCode, summary: string): Failure {
  return { stage, code, summary, hint: releaseFailures[code], log_tail: [] };
}

/** Reasons why nothing of a project can go live, for builds and deployments. */
export const notServed = {
  project_deleted: releaseFailure(
    "switch",
    "project_deleted",
    "The project was deleted before this deployment went live.",
  ),
  org_suspended: releaseFailure(
    "switch",
    "org_suspended",
    "The organization was suspended before this deployment went live.",
  ),
  token_ended: releaseFailure(
    "switch",
    "token_ended",
    "The token that asked for this deployment was revoked or has expired before it went live.",
  ),
} as const;

/** Another push or upload of the same branch went live, or moved the branch, since this one began. */
export const branchMoved: Failure = {
  stage: "switch",
  code: "branch_moved",
  summary: "Newer source code went live while this build ran.",
  hint: "Fetch, merge and push again. If you sent files without git, wait until the other deployment has ended, then send them again.",
  log_tail: [],
};

/** The edges did not apply the new route in time; requests go to the previous deployment again. */
export const edgeUnavailable = releaseFailure(
  "switch",
  "edge_unavailable",
  "The edge did not confirm the new route in time. The previous deployment keeps serving.",
);

export function releaseCommandFailure(result: OneOffResult, command: string): Failure | undefined {
  if (result.outcome !== "exited")
    return releaseFailure("release", "release_timeout", `The release command exceeded its time limit: ${command}`);
  if (result.out_of_memory)
    return releaseFailure("release", "out_of_memory", `The release command exceeded its memory limit: ${command}`);
  if (result.code !== 0)
    return releaseFailure(
      "release",
      "release_failed",
      `The release command ended with exit code ${result.code}: ${command}`,
    );
  return undefined;
}

export function exitFailure({ process, exit_code, out_of_memory }: ExitedReplica): Failure {
  const what = process === "web" ? "The application" : `The process ${process}`;
  if (out_of_memory)
    return releaseFailure("boot", "out_of_memory", `${what} exceeded its memory limit while it started.`);
  if (exit_code === 0) return releaseFailure("boot", "exited_on_boot", `${what} exited with code 0 while it started.`);
  return releaseFailure(
    "boot",
    "crash_on_boot",
    `${what} crashed while it started (exit code ${exit_code ?? "unknown"}).`,
  );
}

type ExitedReplica = Pick<CrashRow, "process" | "exit_code" | "out_of_memory">;

/** Where a replica was probed, and on which ports it was seen to listen. */
export interface Asked {
  readonly port: number;
  readonly path: string | null;
  readonly budgetMs: number;
  readonly listening: readonly ListeningPort[];
}

/** Explains, from the last probe, why a running replica did not become healthy in time. */
export function probeFailure(last: ProbeResult, where: Asked): Failure {
  const asked = where.path ?? "/";
  const seconds = Math.round(where.budgetMs / 1000);
  switch (last.outcome) {
    case "status":
      return releaseFailure(
        "health",
        "health_check_failed",
        `GET ${asked} answered ${last.status} for ${seconds} s${last.said === "" ? "." : `: ${last.said}`}`,
      );
    case "timeout":
      return releaseFailure("health", "health_check_timeout", `GET ${asked} got no answer for ${seconds} s.`);
    case "broken":
      // Some runtimes accept connections for the application, and close them when it does not listen on this port.
      if (where.listening.length > 0 && !where.listening.some(({ port }) => port === where.port))
        return notListening(where, seconds);
      return releaseFailure(
        "health",
        "health_check_broken",
        `GET ${asked} broke off (${last.detail}) for ${seconds} s.`,
      );
    case "check_failed":
      return releaseFailure(
        "health",
        "image_check_failed",
        `The HEALTHCHECK of the image failed for ${seconds} s; the last one ${last.detail}`,
      );
    case "refused":
    case "healthy":
      return notListening(where, seconds);
  }
}

/** An application that listens on no port may be slow instead of wrong. */
function notListening(where: Asked, seconds: number): Failure {
  const summary = `Nothing answered on port ${where.port} for ${seconds} s: ${whereItListens(where)}.`;
  if (where.listening.length === 0) return releaseFailure("health", "not_listening", summary);
  const failure = releaseFailure("health", "wrong_port", summary);
  const late = `If it opens port ${where.port} later, give it the time: \`berth projects settings --start-seconds 180\`.`;
  return { ...failure, hint: `${failure.hint} ${late}` };
}

/** The image of an earlier build was removed from the machine, for example by `docker image prune --all`. */
export function imageMissing(commit: string): Failure {
  const summary = `The image of commit ${commit.slice(0, 8)} is gone from this machine; nothing was switched.`;
  const failure = releaseFailure("boot", "image_missing", summary);
  return { ...failure, hint: `Build the commit again: \`berth deploy --commit ${commit}\`.` };
}

/** Describes, as the end of a sentence, where an application listens instead of the expected port. */
export function whereItListens({ port, listening }: Pick<Asked, "port" | "listening">): string {
  if (listening.length === 0) return "the application runs, but listens on no port";
  if (listening.some((each) => each.port === port && each.loopback))
    return `the application listens on 127.0.0.1:${port}, where requests cannot reach it; it must listen on 0.0.0.0 or on $HOST`;
  // It listens there and refuses all the same: requests come over IPv4.
  if (listening.some((each) => each.port === port))
    return `the application listens on [::]:${port} for IPv6 alone, where requests cannot reach it; it must listen on 0.0.0.0 or on $HOST`;
  const ports = listening.map((each) => `${each.loopback ? "127.0.0.1:" : ""}${each.port}`);
  return `the application listens on port ${ports.join(", ")} instead`;
}
