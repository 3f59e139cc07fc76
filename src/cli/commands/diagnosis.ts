import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { commandFor } from "../route-commands.ts";
import { renderFailure } from "../render/failure.ts";
import { oneLine, terminalText, type Paint } from "../render/text.ts";

type Diagnosis = Answer<"diagnosis.get">;
type Finding = Diagnosis["findings"][number];

const tailLines = 15;

export function addDiagnosis(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "diagnose",
    summary: "Say what is wrong with the project, and the next step; exit code 9 when something is down or broken",
    examples: ["berth diagnose", "berth diagnose -p shop --json"],
  }).action(async () => {
    const slug = await currentProject(ctx);
    const document = await (await ctx.client()).call("diagnosis.get", { params: { slug } });
    ctx.output.result(document, (paint) => describe(paint, slug, document));
    const worst = document.findings[0]?.severity;
    if (worst === "down" || worst === "broken")
      throw new CliError("checkFailed", "check_failed", { message: `${slug} needs attention.` });
  });
}

function describe(paint: Paint, slug: string, { findings, project, log, unread }: Diagnosis): string {
  const parts = findings.map((finding) => describeFinding(paint, finding));
  if (findings.length === 0) parts.push(`No problem was found with ${slug}. ${project.health?.sentence ?? ""}`.trim());
  const tail = log.lines.slice(-tailLines).map(({ text }) => terminalText(text, { colours: false }));
  if (findings.length > 0 && tail.length > 0) {
    const whose = log.source === "build" ? "The newest build's last lines:" : "The application's last lines:";
    parts.push([whose, ...tail.map((line) => `  ${paint.dim("|")} ${line}`)].join("\n"));
  }
  if (unread.length > 0)
    parts.push(
      `Your token may not read these, so the diagnosis leaves them out: ${unread.map(({ route }) => route).join(", ")}.`,
    );
  return parts.join("\n\n");
}

const inkOf = { down: "red", broken: "red", notice: "yellow" } as const;

function describeFinding(paint: Paint, { severity, code, sentence, advice, failure, next }: Finding): string {
  const lines = [
    `${paint[inkOf[severity]](severity)} ${paint.bold(code.replaceAll("_", " "))}  ${oneLine(sentence, 400)}`,
  ];
  if (failure !== null) lines.push(renderFailure(paint, { ...failure, log_tail: [] }));
  lines.push(`  ${oneLine(advice, 400)}`);
  const command = next === null ? undefined : commandFor(next);
  if (command !== undefined) lines.push(`  ${paint.dim("Next:")} ${command}`);
  return lines.join("\n");
}
