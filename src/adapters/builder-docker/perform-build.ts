import { forwardedSockets } from "../../kit/server-address.ts";
import type { BuildRequest } from "../../ports/builder.ts";
import { imageLabels, type ContainerManifest } from "../../ports/image-labels.ts";
import { javaTrustStore } from "../../sandbox/java-trust-store.ts";
import type { BuildEngine } from "./build-engine.ts";
import { evaluateBuild } from "./evaluate-build.ts";
import type { BuildRun } from "./build-run.ts";
import { hostOfScope } from "./cache-scope.ts";
import { watchBuild } from "./build-watch.ts";
import { quoted } from "../../kit/quoted.ts";
import { secretIds, type Generated } from "./generate-dockerfile.ts";
import type { Dockerfile } from "./read-dockerfile.ts";
import { loginFor } from "./registry-access.ts";
import { BuildKitFailed, runBuild } from "./run-build.ts";
import { createVertexLog } from "./vertex-log.ts";

interface Performed {
  readonly folder: string;
  readonly text: string;
  readonly target?: string;
  readonly args: Readonly<Record<string, string>>;
  /** Separates the cached results of its commands from those of other builds. */
  readonly scope: string;
  /** Separates its `--mount=type=cache` folders from those of other builds; defaults to `scope`. */
  readonly cacheScope?: string;
  readonly manifest: ContainerManifest | null;
  readonly generated?: Generated;
  /** The project's own Dockerfile as it was read. */
  readonly read?: Dockerfile;
}

/** Runs one build with BuildKit: writes its progress to the build's log, translates its failures, and returns the image's id. */
export async function performBuild(run: BuildRun, engine: BuildEngine, performed: Performed): Promise<string> {
  const { request, log, time } = run;
  const { folder, target, args, scope, manifest, generated, read } = performed;
  const progress = createVertexLog(log, generated?.steps ?? null);
  const group = engine.groups.open(scope, request.limits, forwardedSockets(request.reach));
  run.taken.add(engine.disks.enter({ layers: group.layers, isServed: progress.isServed }));
  const watch = watchBuild(time, request.limits.silenceMs, { ...progress, cpuSeconds: group.cpuSeconds });
  try {
    return await runBuild({
      ...{ api: engine.api, socket: engine.socket },
      ...(target === undefined ? {} : { target }),
      buildArgs: { ...args, BUILDKIT_CACHE_MOUNT_NS: performed.cacheScope ?? scope },
      extraHost: hostOfScope(scope),
      labels: manifest === null ? {} : labelsOf(request, manifest),
      answers: {
        ...{ context: folder, dockerfile: performed.text },
        secrets: secretsOf(run),
        credentials: (host) => loginFor(run.logins, host),
      },
      signal: watch.signal,
      onProgress(found) {
        watch.heard();
        progress.take(found);
      },
    });
  } catch (error) {
    watch.check();
    time.check();
    if (!(error instanceof BuildKitFailed)) throw error;
    const { message } = error;
    throw evaluateBuild({
      message,
      failed: progress.failed(),
      ...{ read, engineVersion: engine.version, logins: run.logins },
      limits: { ...request.limits, fileBytes: run.options.engine.fileBytes },
    });
  } finally {
    watch.stop();
    await group.remove();
  }
}

function labelsOf({ project_id }: BuildRequest, manifest: ContainerManifest): Record<string, string> {
  return { [imageLabels.project]: project_id, [imageLabels.manifest]: JSON.stringify(manifest) };
}

function certificateSecrets({ certificates }: BuildRun["options"]): (readonly [string, Buffer])[] {
  if (certificates === null) return [];
  return [
    [secretIds.certificates, certificates],
    [secretIds.trustStore, javaTrustStore(certificates.toString())],
  ];
}

/** Returns the secrets of a build: each variable by name, all variables as a shell file, and the certificates. */
function secretsOf({ options, request }: BuildRun): ReadonlyMap<string, Buffer> {
  const env = { ...options.packageEnv, ...request.env };
  const lines = Object.entries(env).flatMap(([name, value]) =>
    /^[A-Za-z_]\w*$/.test(name) ? [`export ${name}=${quoted(value)}\n`] : [],
  );
  return new Map([
    ...Object.entries(request.env).map(([name, value]) => [name, Buffer.from(value)] as const),
    [secretIds.env, Buffer.from(lines.join(""))],
    ...certificateSecrets(options),
  ]);
}
