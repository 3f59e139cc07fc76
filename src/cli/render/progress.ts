import type { CliContext } from "../context.ts";

/** Shows that long work continues: a spinner on a terminal, one plain line elsewhere, nothing with `--json`. */
export async function withProgress<T>(
  ctx: CliContext,
  label: string,
  work: (say: (label: string) => void) => Promise<T>,
): Promise<T> {
  const line = ctx.output.watched() ? spinner(ctx, label) : plainLines(ctx, label);
  try {
    return await work(line.say);
  } finally {
    line.end();
  }
}

interface ProgressLine {
  readonly say: (label: string) => void;
  readonly end: () => void;
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;
const eraseLine = "\r\x1b[2K";

function spinner(ctx: CliContext, first: string): ProgressLine {
  const { stderr } = ctx.environment;
  const paint = ctx.output.stderrPaint();
  let label = first;
  let frame = 0;
  const draw = () => {
    stderr.write(`${eraseLine}${paint.cyan(frames[frame % frames.length] as string)} ${label}`);
    frame += 1;
  };
  const timer = setInterval(draw, frameMs);
  draw();
  const end = () => {
    clearInterval(timer);
    stderr.write(eraseLine);
  };
  return {
    end,
    say: (next) => {
      label = next;
    },
  };
}

function plainLines(ctx: CliContext, first: string): ProgressLine {
  let last = "";
  const say = (label: string) => {
    if (label !== last) ctx.output.note(() => `${label} …`);
    last = label;
  };
  say(first);
  return { say, end: () => {} };
}
