import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { tunnelProtocol } from "../src/contract/table.ts";
import { until } from "../src/kit/until.ts";
import { cliUser } from "./support/cli.ts";
import { eventually, guardMs } from "./support/eventually.ts";
import { testToken } from "./support/test-platform.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";

let running: ReleasePlatform;

before(async () => void (running = await startReleasePlatform()));
after(() => running.close());

const call = (project: ReleaseProject, method: string, path: string, body?: unknown) =>
  running.api.call(method, `${project.path}${path}`, { token: project.org.owner, body });

interface Run {
  readonly number: number;
  readonly status: string;
  readonly exit_code: number | null;
}

const runOf = async (project: ReleaseProject, number: number) =>
  (await call(project, "GET", `/runs/${number}`)).body["run"] as Run;

async function ends(project: ReleaseProject, number: number): Promise<string> {
  const status = async () => {
    const { status } = await runOf(project, number);
    return ["queued", "running"].includes(status) ? undefined : status;
  };
  return (await until(status, { timeoutMs: guardMs })) ?? "not ended";
}

/** Makes commands run until they are cancelled; resolves when the next one has started. */
function endless(): Promise<void> {
  return new Promise((resolve) => {
    running.apps.runOnce = async (_, { signal }) => {
      resolve();
      if (!signal.aborted) await once(signal, "abort");
      return { outcome: "cancelled" };
    };
  });
}

test("a command runs in the active image with its variables, and returns its exit code and its output without secrets", async () => {
  const project = await running.servingProject();
  await call(project, "PUT", "/env/SECRET_WORD", { value: "correct-horse" });
  await project.reaches(2, "active");
  const seen: string[] = [];
  running.apps.runOnce = async ({ env }, { command, onOutput }) => {
    seen.push(command, env["SECRET_WORD"] ?? "");
    await onOutput(Buffer.from("one\nthe word is correct-horse\nlast"));
    return { outcome: "exited", code: 7, out_of_memory: false };
  };
  const { status, body } = await call(project, "POST", "/runs", { command: "npm run seed" });
  assert.deepEqual(seen, ["npm run seed", "correct-horse"]);
  const { run, output, complete } = body as { run: Run; output: string; complete: boolean };
  assert.deepEqual([status, run.status, run.exit_code, complete], [201, "failed", 7, true]);
  assert.match(output, /^one\nthe word is [^c].*\nlast\n$/);
  assert.ok(!JSON.stringify(body).includes("correct-horse"));
});

test("a cancelled command ends, and its slot is free", async () => {
  const project = await running.servingProject();
  const begun = endless();
  const { body } = await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  const { number } = body["run"] as Run;
  assert.equal((await call(project, "POST", `/runs/${number}/cancel`)).status, 200);
  assert.equal(await ends(project, number), "cancelled");
  assert.equal((await call(project, "POST", `/runs/${number}/cancel`)).status, 200);
});

test("long commands of one organization leave slots to other organizations", async () => {
  const first = await running.servingProject();
  const second = await running.servingProject(first.org);
  const other = await running.servingProject();
  void endless();
  const begin = (project: ReleaseProject) => call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  const slow: (readonly [ReleaseProject, number])[] = [];
  for (const project of [first, first, first, first, first, second, second, second, second, second])
    slow.push([project, ((await begin(project)).body["run"] as Run).number]);
  const { number } = (await begin(other)).body["run"] as Run;
  await eventually(
    async () => (await runOf(other, number)).status === "running",
    "the other organization's command runs",
  );
  for (const [project, each] of [...slow, [other, number] as const])
    await call(project, "POST", `/runs/${each}/cancel`);
  for (const [project, each] of slow) assert.equal(await ends(project, each), "cancelled");
});

test("a command is marked interrupted when its control plane stops, and is never started again", async () => {
  const project = await running.servingProject();
  const begun = endless();
  const { body } = await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  await running.pause();
  running.apps.runOnce = async () => assert.fail("the command was started again");
  // A killed control plane leaves the run like this: running, with an expired lease.
  const { number } = body["run"] as Run;
  await running.platform.db
    .updateTable("run")
    .set({ status: "running", finished_at: null, lease_until: new Date(0) })
    .where("project_id", "=", project.owner.project_id)
    .execute();
  await running.resume();
  assert.equal(await ends(project, number), "interrupted");
});

test("a project's deletion cancels its running commands", async () => {
  const project = await running.servingProject();
  const begun = endless();
  await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  await call(project, "DELETE", "");
  const ended = async () => {
    const row = await running.platform.db
      .selectFrom("run")
      .select("status")
      .where("project_id", "=", project.owner.project_id)
      .executeTakeFirstOrThrow();
    return row.status === "cancelled" || undefined;
  };
  assert.equal(await until(ended, { timeoutMs: guardMs }), true);
});

test("a command ends with the token that requested it, whether that is revoked or expires, and says so", async () => {
  const { db } = running.platform;
  for (const how of ["revoked_at", "expires_at"] as const) {
    const project = await running.servingProject();
    const { id, text: token } = await testToken(db, project.org.id, {});
    const begun = endless();
    const body = { command: "sleep 1000", wait_seconds: 0 };
    const asked = await running.api.call("POST", `${project.path}/runs`, { token, body });
    await begun;
    const endsAt = new Date();
    if (how === "revoked_at")
      assert.equal(
        (await running.api.call("DELETE", `/v1/api-tokens/${id}`, { token: project.org.owner })).status,
        204,
      );
    else await db.updateTable("api_token").set({ expires_at: endsAt }).where("id", "=", id).execute();
    const { number } = asked.body["run"] as Run;
    assert.equal(await ends(project, number), "cancelled");
    const { output } = (await call(project, "GET", `/runs/${number}`)).body as { output: string };
    assert.match(output, /The token that requested the command was revoked or has expired/);
  }
});

test("a command ends with its project, and with the suspension of its organization", async () => {
  const { db } = running.platform;
  const now = () => new Date();
  for (const stop of [
    ({ id }: { id: string }) => db.updateTable("organization").set({ suspended_at: now() }).where("id", "=", id),
    ({ id }: { id: string }) => db.updateTable("project").set({ deleted_at: now() }).where("org_id", "=", id),
  ]) {
    const project = await running.servingProject();
    const begun = endless();
    await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
    await begun;
    await stop(project.org).execute();
    const run = db.selectFrom("run").select("status").where("org_id", "=", project.org.id);
    await eventually(async () => (await run.executeTakeFirstOrThrow()).status === "cancelled", "the command is ended");
  }
});

test("a project has at most five open commands, and a project without a deployment can run none", async () => {
  const project = await running.servingProject();
  void endless();
  for (let count = 0; count < 5; count += 1)
    assert.equal((await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 })).status, 201);
  assert.equal((await call(project, "POST", "/runs", { command: "true", wait_seconds: 0 })).status, 409);
  const empty = await call(await running.newProject(), "POST", "/runs", { command: "true" });
  assert.deepEqual([empty.status, empty.body["code"]], [409, "nothing_to_deploy"]);
});

/** A command that prints its terminal's size and each line of input, and exits with 7 at `exit`. */
function talking(): Promise<AbortSignal> {
  return new Promise((resolve) => {
    running.apps.runOnce = async (_, { terminal, onOutput, signal }) => {
      resolve(signal);
      assert.ok(terminal);
      const say = (text: string) => onOutput(Buffer.from(`${text}\n`));
      terminal.onResize(({ columns, rows }) => void say(`${columns}x${rows}`));
      await say(`${terminal.type} ${terminal.size.columns}x${terminal.size.rows}`);
      return new Promise((end) => {
        signal.addEventListener("abort", () => end({ outcome: "cancelled" }), { once: true });
        terminal.input.on("data", (chunk: Buffer) => {
          if (String(chunk).includes("exit")) end({ outcome: "exited", code: 7, out_of_memory: false });
          else void say(`<${String(chunk)}>`);
        });
      });
    };
  });
}

/** A client of a run's terminal. */
function openTerminal(project: ReleaseProject, number: number, token: string) {
  const url = `${running.api.baseUrl.replace("http", "ws")}${project.path}/runs/${number}/terminal`;
  const socket = new WebSocket(url, tunnelProtocol, { headers: { authorization: `Bearer ${token}` } });
  let shown = "";
  const messages: Record<string, unknown>[] = [];
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) shown += data.toString();
    else messages.push(JSON.parse(data.toString()) as Record<string, unknown>);
  });
  const opened = new Promise<number>((resolve) => {
    socket.on("error", () => {});
    socket.once("open", () => resolve(101));
    socket.once("unexpected-response", (_, { statusCode = 0 }) => resolve(statusCode));
  });
  return {
    socket,
    opened,
    messages,
    size: (columns: number, rows: number) =>
      socket.send(JSON.stringify({ type: "size", columns, rows, term: "xterm-color" })),
    sees: (text: string) => eventually(() => shown.includes(text), `the terminal shows ${text}`),
  };
}

const askTerminal = async (project: ReleaseProject, command: string) => {
  const { status, body } = await call(project, "POST", "/runs", { command, terminal: true });
  assert.equal(status, 201);
  return (body["run"] as Run).number;
};

test("a terminal passes keys, sizes and the exit code, opens once and only for its token, and keeps its output", async () => {
  const project = await running.servingProject();
  void talking();
  const number = await askTerminal(project, "bash");
  assert.equal(await openTerminal(project, number, project.org.member).opened, 409);
  const person = openTerminal(project, number, project.org.owner);
  assert.equal(await person.opened, 101);
  person.size(100, 30);
  await person.sees("xterm-color 100x30");
  person.socket.send(Buffer.from("hello"));
  await person.sees("<hello>");
  person.size(120, 50);
  await person.sees("120x50");
  assert.equal(await openTerminal(project, number, project.org.owner).opened, 409);
  const closed = once(person.socket, "close");
  person.socket.send(Buffer.from("exit"));
  assert.equal((await closed)[0], 1000);
  assert.deepEqual(person.messages, [{ type: "exit", status: "failed", exit_code: 7 }]);
  const { body } = await call(project, "GET", `/runs/${number}`);
  const { run, output } = body as { run: Run; output: string };
  assert.deepEqual([run.status, run.exit_code], ["failed", 7]);
  assert.match(output, /100x30\n<hello>\n120x50\n/);
});

test("a run is cancelled when its terminal's connection closes", async () => {
  const project = await running.servingProject();
  const begun = talking();
  const number = await askTerminal(project, "bash");
  const person = openTerminal(project, number, project.org.owner);
  await person.opened;
  person.size(80, 24);
  const signal = await begun;
  const aborted = signal.aborted ? undefined : once(signal, "abort");
  person.socket.terminate();
  await aborted;
  assert.equal(await ends(project, number), "cancelled");
});

test("a run whose terminal is not opened in time is cancelled without a start", async () => {
  const project = await running.servingProject();
  running.apps.runOnce = async () => assert.fail("the command was started");
  const number = await askTerminal(project, "bash");
  await running.platform.db
    .updateTable("run")
    .set({ created_at: new Date(Date.now() - 120_000) })
    .where("project_id", "=", project.owner.project_id)
    .execute();
  assert.equal(await ends(project, number), "cancelled");
  assert.equal(await openTerminal(project, number, project.org.owner).opened, 409);
});

test("berth run -it passes input on and exits with the command's exit code", async () => {
  const project = await running.servingProject();
  const begun = talking();
  await using user = await cliUser({ url: running.api.baseUrl, token: project.org.owner });
  const { child, ended } = user.start(["run", "-p", project.slug, "-it", "--", "bash"]);
  await begun;
  child.stdin.write("exit");
  const { exitCode, stdout, stderr } = await ended;
  assert.equal(exitCode, 7, stderr);
  assert.match(stdout, /80x24/);
});

test("berth db psql on a machine without psql runs the application's own, with its arguments and exit code", async () => {
  const project = await running.servingProject();
  const seen: string[] = [];
  let code = 3;
  running.apps.runOnce = async (_, { command, onOutput }) => {
    seen.push(command);
    await onOutput(Buffer.from("42\n"));
    return { outcome: "exited", code, out_of_memory: false };
  };
  await using user = await cliUser({ url: running.api.baseUrl, token: project.org.owner });
  const psql = (...args: string[]) =>
    user.berth(["db", "psql", "-p", project.slug, ...args], { env: { PATH: user.home } });
  const asked = await psql("--database", "restored_1", "--", "-c", "select 6 * 7");
  assert.deepEqual([asked.exitCode, asked.stdout], [3, "42\n"], asked.stderr);
  assert.deepEqual(seen, ["env PGDATABASE=restored_1 psql -c 'select 6 * 7'"]);
  code = 127;
  const missing = await psql("--", "-c", "select 1");
  assert.equal(missing.exitCode, 1);
  assert.match(missing.stderr, /psql is not installed on this machine or in the application's image/);
  const silent = await psql();
  assert.match(silent.stderr, /psql is not installed on this machine\./);
  assert.equal(seen.length, 2);
});
