import { tellingLine } from "../detection/classify.ts";
import type { BuilderFailureCode, FailureDetail } from "../detection/failures.ts";
import type { Step, Tool } from "../detection/plan.ts";
import { unreachable } from "../detection/unreachable.ts";

interface StepEnd {
  /** Such as `ended with exit code 1`. */
  readonly how: string;
  /** The end of its output. */
  readonly text: string;
}

/** Describes a failed step. For codes that name no cause, the sentence is made of the command and the most telling line of its output. */
export function describeStepFailure(code: BuilderFailureCode, step: Step, { how, text }: StepEnd): FailureDetail {
  const telling = tellingLine(text, code === "registry_unreachable" ? unreachable : undefined);
  const hint = code === "lock_out_of_sync" ? lockHints[step.tool] : undefined;
  const better = hint === undefined ? {} : { hint };
  if (code !== step.otherwise) {
    if (telling === null) return better;
    return { summary: `${sentences[code] ?? ""}${telling}`, ...better };
  }
  return { summary: `\`${step.args.join(" ")}\` ${how}${telling === null ? "." : `: ${telling}`}` };
}

const sentences: Partial<Record<BuilderFailureCode, string>> = {
  lock_out_of_sync: "The lock file does not fit the declared dependencies: ",
  dependency_not_found: "A dependency could not be found: ",
  registry_unreachable: "The package registry could not be reached: ",
  python_version_unavailable: "A dependency needs another Python version than this machine's: ",
  native_build_failed: "A dependency with native code could not be compiled: ",
};

const lockHints: Partial<Record<Tool, string>> = {
  npm: "Run `npm install` on your machine, commit package-lock.json and push again.",
  pnpm: "Run `pnpm install` on your machine, commit pnpm-lock.yaml and push again.",
  yarn: "Run `yarn install` on your machine, commit yarn.lock and push again.",
  bun: "Run `bun install` on your machine, commit bun.lock and push again.",
  deno: "Run `deno install` on your machine, commit deno.lock and push again.",
  bundler: "Run `bundle lock` on your machine, commit Gemfile.lock and push again.",
  composer: "Run `composer update --lock` on your machine, commit composer.lock and push again.",
  cargo: "Run `cargo update --workspace` on your machine, commit Cargo.lock and push again.",
  go: "Run `go mod tidy` on your machine, commit go.mod and go.sum, and push again.",
};
