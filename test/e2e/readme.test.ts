import assert from "node:assert/strict";
import { chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../../src/kit/exec.ts";
import { withoutDocker } from "../support/docker-engine.ts";
import { drawCases } from "../support/draw-cases.ts";
import { checkoutFor, startPlatform, type TestPlatform } from "./platform.ts";
import { guardMs } from "../support/eventually.ts";
import { startVisitedPlatform } from "./ways.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const ordinaryUid = 54_400;

/** Returns the command lines of the README's tour, with the ports of this platform. */
function tourOf(platform: TestPlatform): string[] {
  const readme = readFileSync(join(checkout, "README.md"), "utf8");
  const chapter = readme.slice(readme.indexOf("## Five minutes"), readme.indexOf("## What it deploys"));
  const blocks = [...chapter.matchAll(/^```sh\n(.*?)^```/gms)].map((found) => found[1] as string);
  const text = blocks
    .join("")
    .replaceAll(":8080", `:${platform.edgePort}`)
    .replaceAll("http://127.0.0.1:4000", platform.api);
  return text.split("\n").filter((line) => line !== "");
}

/** Runs the lines one after the other in one shell, and returns the output and exit code of each. */
async function type(lines: readonly string[], as: { home: string; uid?: number; env: Record<string, string> }) {
  const script = lines
    .map((line, index) => `echo "@@${index}"\n${line}\ncode=$?; echo; echo "@@exit $code"`)
    .join("\n");
  const identity = as.uid === undefined ? {} : { uid: as.uid, gid: as.uid };
  const env = {
    ...as.env,
    HOME: as.home,
    GIT_AUTHOR_NAME: "Reader",
    GIT_AUTHOR_EMAIL: "reader@localhost",
    GIT_COMMITTER_NAME: "Reader",
    GIT_COMMITTER_EMAIL: "reader@localhost",
  };
  const result = await run(
    { file: "/bin/sh", args: ["-s"] },
    { stdin: `exec 2>&1\n${script}\n`, cwd: as.env["CHECKOUT"] as string, env, ...identity, timeoutMs: guardMs },
  );
  return result.stdout
    .split(/^@@\d+\n/m)
    .slice(1)
    .map((part, index) => {
      const [output = "", exit = ""] = part.split(/^@@exit /m);
      return { line: lines[index] as string, output, exitCode: Number(exit) };
    });
}

function assertTour(steps: Awaited<ReturnType<typeof type>>): void {
  const told = steps.map((step) => `$ ${step.line}\n${step.output}(${step.exitCode})`).join("\n");
  let pushes = 0;
  for (const step of steps) {
    // The tour's second push is broken on purpose, so the platform must reject it.
    const isRefused = step.line === "git push berth HEAD:main" && (pushes += 1) === 2;
    assert.equal(step.exitCode === 0, !isRefused, `${step.line}\n${told}`);
  }
  const answers = steps
    .filter((step) => step.line.includes("curl http://hello."))
    .map((step) => step.output.trim().split("\n").at(-1));
  assert.deepEqual(answers, ["hello", "good morning", "good morning"], told);
  const rollback = steps.findIndex((step) => step.line === "berth rollback");
  assert.match(steps[rollback]?.output ?? "", /deployment|rolled back/i);
}

const asThisUser = () => takeTour(startPlatform());

const inContainers = () => takeTour(startVisitedPlatform({ runtime: "docker", over: "http" }, []));

const takeTour = async (starting: Promise<TestPlatform>) => {
  const platform = await starting;
  const home = mkdtempSync(join(tmpdir(), "berth-tour-"));
  try {
    assertTour(await type(tourOf(platform), { home, env: tourEnvironment(platform, checkout) }));
  } finally {
    await platform.destroy();
    rmSync(home, { recursive: true, force: true });
  }
};

const asOrdinaryUser = async () => {
  const home = mkdtempSync(join(tmpdir(), "berth-tour-"));
  chownSync(home, ordinaryUid, ordinaryUid);
  const platform = await startPlatform({ HOME: home }, { uid: ordinaryUid, dataDir: join(home, "data") });
  try {
    assertTour(
      await type(tourOf(platform), {
        home,
        uid: ordinaryUid,
        env: tourEnvironment(platform, checkoutFor(ordinaryUid).here),
      }),
    );
  } finally {
    await platform.destroy();
    rmSync(home, { recursive: true, force: true });
  }
};

const users = [
  ["as root or the user that runs the tests", asThisUser],
  ["as an ordinary user", asOrdinaryUser],
  ["with BERTH_RUNTIME=docker", inContainers],
] as const;
const isRoot = process.getuid?.() === 0;
for (const [who, tour] of isRoot ? drawCases(users, 1) : users.slice(0, 1)) {
  const skip = tour === inContainers && withoutDocker;
  test(`each command of the README's tour works as printed, ${who}`, { skip }, tour);
}

function tourEnvironment(platform: TestPlatform, checkoutDir: string): Record<string, string> {
  const port = new URL(platform.api).port;
  return {
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    CHECKOUT: checkoutDir,
    BERTH_DATA: platform.dataDir,
    BERTH_HTTP_PORT: port,
  };
}
