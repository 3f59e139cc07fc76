import type { CliContext } from "./context.ts";
import { ApplicationExit, CliError } from "./failures.ts";
import { openTunnel } from "./open-tunnel.ts";

/** Connects this terminal to a one-off command, and exits with the command's exit code. */
export async function runInTerminal(ctx: CliContext, slug: string, number: number): Promise<never> {
  const { stdin, stdout } = ctx.environment;
  const tunnel = await openTunnel(ctx, `/v1/projects/${slug}/runs/${number}/terminal`);
  const term = ctx.environment.childEnvironment["TERM"] ?? "xterm";
  const sendSize = () => tunnel.tell({ type: "size", columns: stdout.columns ?? 80, rows: stdout.rows ?? 24, term });
  const exit = tunnel.next("exit");
  const isPerson = stdin.isTTY === true;
  try {
    sendSize();
    stdout.on("resize", sendSize);
    // Without raw mode, Ctrl-C would end this program instead of the remote one.
    if (isPerson) stdin.setRawMode(true);
    stdin.pipe(tunnel.bytes);
    tunnel.bytes.pipe(stdout, { end: false });
    const { status, exit_code } = await exit;
    throw endOf(String(status), exit_code);
  } finally {
    stdout.off("resize", sendSize);
    stdin.unpipe(tunnel.bytes);
    if (isPerson) stdin.setRawMode(false);
    stdin.pause();
    stdin.unref?.();
    tunnel.close();
  }
}

function endOf(status: string, exitCode: unknown): Error {
  if (typeof exitCode === "number") return new ApplicationExit(exitCode);
  const how =
    { timed_out: "took too long", cancelled: "was ended" }[status] ?? "was interrupted by a stop of the platform";
  return new CliError("refused", status, { message: `The command ${how}.` });
}
