import { describeStepFailure } from "../../building/step-failure.ts";
import { classify, tellingLine } from "../../detection/classify.ts";
import { BuildRefused } from "../../detection/failures.ts";
import type { Step, Tool } from "../../detection/plan.ts";
import type { BuildLimits, RegistryLogin } from "../../ports/builder.ts";
import type { Dockerfile } from "./read-dockerfile.ts";
import { hostIn, loginFor } from "./registry-access.ts";
import type { FailedVertex } from "./vertex-log.ts";

interface Judged {
  readonly message: string;
  readonly failed: FailedVertex | undefined;
  readonly limits: Pick<BuildLimits, "memoryBytes"> & { readonly fileBytes: number };
  /** The project's own Dockerfile; undefined if Berth wrote it, so that its lines mean nothing to the user. */
  readonly read: Pick<Dockerfile, "originalLine" | "stages" | "unknownStages"> | undefined;
  readonly engineVersion: string;
  readonly logins: readonly RegistryLogin[];
}

/** Derives the failure from BuildKit's message and the failed step's output. */
export function evaluateBuild(judged: Judged): BuildRefused {
  const { failed, read } = judged;
  // A message quotes the Dockerfile, of which a line may be long.
  const message = judged.message.slice(0, 20_000).replace(/^(?:failed to (?:solve|build|create)[^:]*: )+/, "");
  const [, line, parse = ""] = /^(?:dockerfile )?parse error (?:on )?line (\d+): (.*)/is.exec(message) ?? [];
  const place =
    line === undefined
      ? "The Dockerfile cannot be built"
      : `Line ${read?.originalLine(Number(line)) ?? line} of the Dockerfile`;
  const unknown = unknownFlag.exec(line === undefined ? message : parse);
  if (unknown !== null)
    return new BuildRefused("dockerfile_invalid", {
      summary: `${place}: this machine's Docker engine, ${judged.engineVersion}, does not know \`${unknown.slice(1).find(Boolean)?.slice(0, 100)}\`.`,
      hint: "Check its spelling. If it is newer than the engine, leave it out, or ask the operator for a newer Docker engine.",
    });
  if (line !== undefined) return new BuildRefused("dockerfile_invalid", { summary: `${place}: ${parse}` });
  if (/no space left on device/i.test(message)) return new BuildRefused("disk_full");
  const [, code] = /exit code: (\d+)/.exec(`${failed?.error ?? ""} ${message}`) ?? [];
  if (failed !== undefined && code !== undefined) return stepFailure(judged, failed, Number(code));
  if (isPull.test(message) && (failed === undefined || /^(?:FROM|load metadata) /.test(failed.instruction)))
    return pullFailure(judged, message);
  if (failed === undefined || /^(?:unknown|invalid|dockerfile)/i.test(message))
    return new BuildRefused("dockerfile_invalid", { summary: `${place}: ${shortened(message)}` });
  return new BuildRefused("dockerfile_step_failed", {
    summary: `\`${failed.instruction}\`: ${shortened(failed.error || message)}`,
  });
}

/** Frontends that do not know a flag, a key of `--mount` or an instruction say so in these words. */
const unknownFlag = /unknown flag: (\S+)|unexpected key '([^']*)'|unsupported mount type "([^"]*)"/i;

function pullFailure({ failed, read, logins }: Judged, message: string): BuildRefused {
  const said = `${failed?.instruction ?? ""} ${message}`;
  const stage = read?.unknownStages.find((name) => said.includes(`docker.io/library/${name}:`));
  if (stage !== undefined) {
    const stages = read?.stages.length === 0 ? "it names none" : `its stages: ${read?.stages.slice(0, 10).join(", ")}`;
    return new BuildRefused("parent_image_unavailable", {
      summary: `\`${stage}\` is no stage of the Dockerfile (${stages}), and no image of this name could be pulled.`,
      hint: `Correct the name after \`FROM\` or \`--from=\`, or name a stage with \`FROM … AS ${stage}\`. Images of other projects cannot be used.`,
    });
  }
  const isGenerated = read === undefined;
  const summary = `${isGenerated ? ownPullText : pullText}: ${shortened(message)}`;
  if (!isRefusal.test(message))
    return new BuildRefused("parent_image_unavailable", { summary, ...(isGenerated ? { hint: ownPullHint } : {}) });
  const host = hostIn(said);
  const login = loginFor(logins, host);
  const stored = `Store a login that may pull it: \`berth registries add ${host} --username NAME --password-stdin\`, then push again.`;
  const hint =
    login === undefined
      ? `If the image is private: ${stored} If it is public, check its name and its tag.`
      : `${host} refused the stored login of ${login.username}, or it may not pull this image. ${stored}`;
  return new BuildRefused("parent_image_unavailable", { summary, hint });
}

/** How registries and BuildKit refuse a pull for want of a login; some say it of missing images, too. */
const isRefusal =
  /\b401\b|\b403\b|unauthorized|authorization failed|failed to authorize|access.*denied|insufficient_scope|no basic auth/i;

const isPull =
  /failed to (?:do request|resolve|authorize|fetch)|pull access denied|manifest unknown|not found|unauthorized|no such host|access.*denied/i;
const pullText = "A base image of the Dockerfile could not be pulled";
const ownPullText = "The base image that Berth builds on could not be pulled";
const ownPullHint =
  "Ask the operator to let the machine reach the registry, or to name another image with BERTH_BASE_IMAGE.";

const shortened = (text: string): string => text.replace(/\s+/g, " ").slice(0, 400);

// Exit code after SIGXFSZ, sent to a command that exceeds the file size limit; npm names the signal of its command, and commands that ignore it print an error.
const tooLargeFile = 153;
const saysTooLarge = /\bEFBIG\b|\bSIGXFSZ\b|: File too large\s*$|File size limit exceeded/m;

// Exit code after SIGKILL, which the kernel sends when a group reaches its memory limit.
const killed = 137;

function stepFailure({ limits }: Judged, { instruction, step, text }: FailedVertex, exitCode: number): BuildRefused {
  const named = step ?? likeStep(instruction);
  const memory = `${Math.round(limits.memoryBytes / 1024 / 1024)} MiB`;
  if (exitCode === killed)
    return new BuildRefused("build_out_of_memory", {
      stage: named.stage,
      summary: `\`${instruction}\` was killed: a build has ${memory} of memory.`,
    });
  if (exitCode === tooLargeFile || saysTooLarge.test(text)) {
    const largest = `${Math.round(limits.fileBytes / 1024 / 1024)} MiB`;
    const summary = `\`${instruction}\` wrote a file of more than ${largest}.`;
    return new BuildRefused("build_output_too_large", { stage: named.stage, summary });
  }
  const code = classify(named, text);
  const how = `ended with exit code ${exitCode}`;
  if (step === undefined && code === "dockerfile_step_failed") {
    const telling = tellingLine(text);
    return new BuildRefused(code, { summary: `\`${instruction}\` ${how}${telling === null ? "." : `: ${telling}`}` });
  }
  return new BuildRefused(code, { stage: named.stage, ...describeStepFailure(code, named, { how, text }) });
}

const tools: readonly (readonly [RegExp, Tool])[] = [
  [/\bnpm (?:ci|install|i)\b/, "npm"],
  [/\bpnpm (?:install|i)\b/, "pnpm"],
  [/\byarn(?: install)?(?:\s|$)/, "yarn"],
  [/\bpip3? install\b/, "pip"],
  [/\bgo (?:build|mod|install|get)\b/, "go"],
];

/** Describes a Dockerfile's own command as a step of the package manager that it calls, so that its output is classified like that step's. */
function likeStep(instruction: string): Step {
  const tool = tools.find(([pattern]) => pattern.test(instruction))?.[1] ?? "script";
  const args = [instruction.replace(/^RUN /, "")] as const;
  const stage = tool === "script" || tool === "go" ? "build" : "install";
  return { title: instruction, stage, args, env: {}, tool, otherwise: "dockerfile_step_failed" };
}
