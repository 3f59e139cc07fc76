import { join, resolve } from "node:path";
import type { Command } from "commander";
import { run } from "../../kit/exec.ts";
import { counted } from "../../kit/bytes-text.ts";
import { ownFolder } from "../../kit/own-version.ts";
import { addCommand, commandGroup, severalCommands } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { paintStatus, type Paint } from "../render/text.ts";

/** Adds what works on the platform's own machine, by the `berthd` that came with this command: `berth doctor` and `berth support bundle`. */
export const addMachine = severalCommands(() => [
  addDoctor,
  commandGroup({ name: "support", summary: "Get help with Berth on this machine", commands: () => [addBundle] }),
]);

function addDoctor(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "doctor",
    summary: "Examine what Berth needs on this machine, whether it runs or not, and say what mends it",
    examples: ["berth doctor", "sudo berth doctor --fix", "berth doctor --json"],
  })
    .option("--fix", "install the programs that are missing")
    .action(async ({ fix }: { fix?: true }) => {
      const said = await berthd(ctx, ["doctor", "--json", ...(fix === true ? ["--fix"] : [])]);
      const { findings } = JSON.parse(said) as { findings: readonly Finding[] };
      ctx.output.result({ findings }, (paint) => findings.map((finding) => lineOf(finding, paint)).join("\n"));
      const failing = findings.filter(({ status }) => status === "fail").length;
      if (failing > 0)
        throw new CliError("checkFailed", "requirements_missing", {
          message: `${counted(failing, "requirement")} missing.`,
        });
    });
}

function addBundle(support: Command, ctx: CliContext): void {
  addCommand(support, {
    usage: "bundle [file]",
    summary:
      "Write an archive for a question about Berth: versions, settings without secrets, checks and the newest log lines",
    examples: ["berth support bundle", "berth support bundle /tmp/berth.tar.gz"],
  }).action(async (file: string | undefined) => {
    const args = file === undefined ? [] : [resolve(ctx.environment.cwd, file)];
    const said = await berthd(ctx, ["support-bundle", ...args]);
    ctx.output.result({ said: said.trim() }, () => said.trim());
  });
}

interface Finding {
  readonly check: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly remedy: string | null;
}

function lineOf({ check, status, detail, remedy }: Finding, paint: Paint): string {
  const line = `${paintStatus(paint, status)}${" ".repeat(6 - status.length)}${check.padEnd(13)} ${detail}`;
  return remedy === null ? line : `${line}\n${" ".repeat(20)}→ ${remedy}`;
}

/** Runs the daemon's program and returns what it printed. */
async function berthd(ctx: CliContext, args: readonly string[]): Promise<string> {
  const { cwd, childEnvironment: env } = ctx.environment;
  const { stdout, stderr } = await run({ file: join(ownFolder, "bin/berthd"), args }, { cwd, env });
  if (stdout.trim() === "") throw new CliError("refused", "berthd_failed", { message: stderr.trim() });
  return stdout;
}
