import { cp, mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { sql } from "kysely";
import { createFirstOrganization } from "../features/tokens/tokens.ts";
import { runOk, start } from "../kit/exec.ts";
import type { Log } from "../kit/log.ts";
import { replaceFileAsync } from "../kit/whole-file.ts";
import type { Db } from "../store/database.ts";

/** Creates the first organization and its token file (0600) unless there is one. */
export async function ensureFirstOrganization(db: Db, tokenFile: string): Promise<void> {
  await createFirstOrganization(db, (text) => replaceFileAsync(tokenFile, `${text}\n`));
}

export interface ExampleOptions {
  readonly db: Db;
  readonly log: Log;
  readonly gitBin: string;
  /** The control plane's URL on this machine, such as `http://127.0.0.1:4000`. */
  readonly baseUrl: string;
  readonly tokenFile: string;
  /** The folder of the application's source. */
  readonly source: string;
  readonly onLine: (line: string) => void;
}

const slug = "example";
const fact = "example";

/** Deploys the example once, as a user would: through the API and a real `git push`. A failure is logged, and the next start tries again. */
export async function deployExample(options: ExampleOptions): Promise<"deployed" | "known" | "failed"> {
  try {
    if (await isDone(options.db)) return "known";
    const token = (await readFile(options.tokenFile, "utf8")).trim();
    await createProject(options.baseUrl, token);
    await push(options, token);
    await markDone(options.db);
    return "deployed";
  } catch (error) {
    const fields = error instanceof PushRefused ? { reason: error.message } : { err: error };
    options.log.error(fields, "the example could not be deployed; the platform runs without it");
    return "failed";
  }
}

async function isDone(db: Db): Promise<boolean> {
  return (await db.selectFrom("platform_fact").select("key").where("key", "=", fact).executeTakeFirst()) !== undefined;
}

async function markDone(db: Db): Promise<void> {
  await sql`insert into platform_fact (key, value) values (${fact}, 'true') on conflict (key) do nothing`.execute(db);
}

async function createProject(baseUrl: string, token: string): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/projects`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ slug, name: "Example" }),
  });
  // An interrupted first start may have created it already.
  if (response.ok || response.status === 409) return;
  throw new Error(`the project was not created: ${await response.text()}`);
}

async function push(options: ExampleOptions, token: string): Promise<void> {
  // Next to the token, not in /tmp: a start that is killed then leaves nothing outside of the data folder.
  const dir = join(dirname(options.tokenFile), "example");
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { mode: 0o700 });
  const author = {
    GIT_AUTHOR_NAME: "Berth",
    GIT_AUTHOR_EMAIL: "berth@localhost",
    GIT_COMMITTER_NAME: "Berth",
    GIT_COMMITTER_EMAIL: "berth@localhost",
  };
  // Pass the token in the environment, which only this user's processes can read, never as an argument.
  const header = `Authorization: Basic ${Buffer.from(`berth:${token}`).toString("base64")}`;
  const config = {
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "http.extraHeader",
    GIT_CONFIG_VALUE_0: header,
  };
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: dir, ...author, ...config };
  const git = (...args: string[]) => runOk({ file: options.gitBin, args }, { cwd: dir, env });
  try {
    await cp(options.source, dir, { recursive: true });
    await git("init", "--quiet", "--initial-branch=main");
    await git("add", ".");
    await git("commit", "--quiet", "--message=Example");
    await pushLive(options, dir, env);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function pushLive(options: ExampleOptions, cwd: string, env: Record<string, string>): Promise<void> {
  const args = ["push", "--progress", `${options.baseUrl}/git/main/${slug}.git`, "main"];
  const child = start({ file: options.gitBin, args }, { cwd, env });
  child.stdin.end();
  child.stdout.resume();
  let rest = "";
  child.stderr.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split(/\r?\n|\r/);
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("remote: ")) options.onLine(line.slice("remote: ".length).trimEnd());
  });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  if (code !== 0) throw new PushRefused("git push of the example failed; the lines above say why");
}

/** Not a fault of this process, so it is logged without a stack. */
class PushRefused extends Error {
  override readonly name = "PushRefused";
}
