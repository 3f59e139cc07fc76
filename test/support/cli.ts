import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { readEnvironment, type Environment } from "../../src/cli/environment.ts";
import { runCommandLine } from "../../src/cli/run-command-line.ts";
import { start, systemPath, type ExecResult } from "../../src/kit/exec.ts";
import { guardMs } from "./eventually.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
/** The test runner's compile cache, so that a CLI process need not compile its modules again. */
const compiledCode = process.env["NODE_COMPILE_CACHE"];

export type CliResult = Pick<ExecResult, "exitCode" | "stdout" | "stderr">;

/** A user with a separate home folder, who runs the CLI. */
export interface CliUser extends AsyncDisposable {
  readonly home: string;
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** Starts the CLI as a child process without waiting for it, so that a test can send it signals. */
  readonly start: (args: readonly string[]) => {
    child: ReturnType<typeof start>;
    ended: Promise<CliResult>;
  };
  readonly berth: (
    args: readonly string[],
    how?: { env?: Record<string, string>; stdin?: string; cwd?: string },
  ) => Promise<CliResult>;
}

/** Creates a user; with `platform` and `token` the user is logged in already. */
export async function cliUser(login: { url?: string; token?: string } = {}): Promise<CliUser> {
  const home = await mkdtemp(join(tmpdir(), "berth-cli-"));
  const env = {
    PATH: systemPath,
    HOME: home,
    GIT_CONFIG_NOSYSTEM: "1",
    ...(compiledCode === undefined ? {} : { NODE_COMPILE_CACHE: compiledCode }),
    ...(login.url === undefined ? {} : { BERTH_URL: login.url }),
    ...(login.token === undefined ? {} : { BERTH_TOKEN: login.token }),
  };
  return {
    home,
    env,
    configFile: join(home, ".config", "berth", "config.json"),
    start: (args) => {
      const child = start({ file: process.execPath, args: [main, ...args] }, { cwd: home, env });
      return { child, ended: ending(child) };
    },
    berth: (args, how = {}) => runHere(args, { cwd: how.cwd ?? home, env: { ...env, ...how.env }, stdin: how.stdin }),
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  };
}

async function ending(child: ReturnType<typeof start>) {
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { exitCode: await exit, stdout, stderr };
}

interface Invocation {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | undefined;
}

/** Runs a command line in this process, because starting Node each time would take most of a test's time. */
async function runHere(args: readonly string[], { cwd, env, stdin }: Invocation): Promise<CliResult> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  const streams = { stdin: Readable.from(stdin === undefined ? [] : [stdin]), stdout, stderr };
  const environment = { ...readEnvironment(env), cwd, ...streams } as unknown as Environment;
  const exitCode = await runCommandLine(args, environment, AbortSignal.timeout(guardMs));
  stdout.end();
  stderr.end();
  const [out, err] = await printed;
  return { exitCode, stdout: out, stderr: err };
}
