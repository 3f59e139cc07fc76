import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../../src/contract/routes.ts";
import { runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { createApp, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { startVisitedPlatform } from "../../test/e2e/ways.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../../test/support/docker-engine.ts";
import { provideImage } from "../images/provide-image.ts";
import { environment, freshFolder, lock, pushLive, sourceOf, total } from "./deploy.ts";
import { benchSize, median, timeRow, type BenchRow } from "./row.ts";

const rounds = benchSize("rounds", 5);

// The client of Debian's docker.io; newer clients need a plugin to build.
const client = "/usr/bin/docker";

export function dockerBenchLacks(): string | undefined {
  if (withoutDocker !== false) return withoutDocker;
  return existsSync(client) ? undefined : "Debian's docker client is not installed";
}

/**
 * Measures an application with a Dockerfile from `git push` to the first 200: Berth on a Docker engine against the same steps by hand on
 * another engine (push to a bare repository, checkout, `docker build`, `docker run`, first 200).
 */
export async function measureDockerDeploys(): Promise<BenchRow[]> {
  const platform = await startVisitedPlatform({ runtime: "docker", over: "http" }, []);
  const engine = await startTestEngine();
  try {
    const parent = await provideImage(engine.socket, "node");
    const prepare = async (slug: string) => {
      const app = await createApp(platform, slug, { ...sourceOf(slug), Dockerfile: dockerfileOf(parent) });
      await lock(app);
      return app;
    };
    const hand = handOn(engine);
    const [cold, warm] = [pairs(), pairs()];
    for (let round = 0; round <= rounds; round += 1) {
      const slug = `cold-${round}`;
      const app = await prepare(slug);
      const theirs = await hand.deploy(app, slug, ["--no-cache"]);
      const ours = total(await pushLive(platform, app, { slug, text: slug }));
      // Not counted: the first build also starts Berth's build engine.
      if (round > 0) add(cold, ours, theirs);
    }
    const app = await prepare("warm");
    await hand.deploy(app, "warm", []);
    await pushLive(platform, app, { slug: "warm", text: "warm" });
    for (let round = 0; round < rounds; round += 1) {
      const text = `warm ${round}`;
      await app.commit({ "text.txt": text });
      const theirs = await hand.deploy(app, text, []);
      add(warm, total(await pushLive(platform, app, { slug: "warm", text })), theirs);
    }
    const starts = pairs();
    for (let round = 0; round < rounds; round += 1) {
      const theirs = await hand.start(`warm ${rounds - 1}`);
      add(starts, await scale(platform, "warm", 2), theirs);
      await scale(platform, "warm", 1);
    }
    const against = "git push, docker build and docker run by hand";
    return [
      timeRow("push of a Dockerfile to first 200, nothing cached", against, medians(cold)),
      timeRow("push of a Dockerfile to first 200, only the source changed", against, medians(warm)),
      timeRow("a second replica until it is healthy", "docker run of the same image to first 200", medians(starts)),
    ];
  } finally {
    await engine.close();
    await platform.destroy();
  }
}

/** Returns how long the project takes to have this many ready replicas, in milliseconds. */
async function scale(platform: TestPlatform, slug: string, replicas: number): Promise<number> {
  const from = performance.now();
  const { status } = await platform.call("PUT", `/v1/projects/${slug}/scale`, { replicas });
  if (status !== 200) throw new Error(`the project was not scaled: ${status}`);
  const areReady = async () => {
    const { body } = await platform.call<Result<"overview.get">>("GET", "/v1/overview");
    return body.projects.find((each) => each.slug === slug)?.replicas.ready === replicas ? true : undefined;
  };
  if (!(await until(areReady, { timeoutMs: 60_000, atMostMs: 20 }))) throw new Error("the replicas are not ready");
  return performance.now() - from;
}

interface Pairs {
  readonly ours: number[];
  readonly theirs: number[];
}

const pairs = (): Pairs => ({ ours: [], theirs: [] });
const medians = ({ ours, theirs }: Pairs) => ({ ours: median(ours), theirs: median(theirs), goal: null });

function add(to: Pairs, ours: number, theirs: number): void {
  to.ours.push(ours);
  to.theirs.push(theirs);
}

const dockerfileOf = (parent: string): string =>
  [
    `FROM ${parent}`,
    "WORKDIR /app",
    "COPY package.json package-lock.json ./",
    "RUN npm ci --no-audit --no-fund",
    "COPY . .",
    "RUN npm run build",
    "EXPOSE 3000",
    'CMD ["node", "server.js"]',
    "",
  ].join("\n");

function handOn({ socket }: TestEngine) {
  const env = { ...environment(), DOCKER_HOST: `unix://${socket}`, DOCKER_BUILDKIT: "1" };
  const dir = freshFolder("hand");
  const bare = join(freshFolder("bare"), "bare.git");
  const docker = (...args: readonly string[]) =>
    runOk({ file: client, args }, { cwd: dir, env, timeoutMs: 300_000 }).then(({ stdout }) => stdout.trim());
  const git = (cwd: string, ...args: readonly string[]) => runOk({ file: "git", args }, { cwd, env });
  const start = async (text: string): Promise<number> => {
    const from = performance.now();
    const id = await docker("run", "--detach", "--env", "PORT=3000", "by-hand");
    try {
      const address = await docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", id);
      const answer = () => fetch(`http://${address}:3000/`).then((found) => found.text());
      const isServed = () =>
        answer().then(
          (found) => (found === text ? true : undefined),
          () => undefined,
        );
      if ((await until(isServed, { timeoutMs: 20_000 })) === undefined)
        throw new Error("the app by hand did not answer");
      return performance.now() - from;
    } finally {
      await docker("rm", "--force", id);
    }
  };
  const deploy = async (app: TestApp, text: string, flags: readonly string[]): Promise<number> => {
    const from = performance.now();
    await git(dir, "init", "--quiet", "--bare", bare);
    await git(app.dir, "push", "--quiet", "--force", bare, "HEAD:refs/heads/main");
    await git(dir, `--git-dir=${bare}`, `--work-tree=${dir}`, "checkout", "--force", "--quiet", "main");
    await docker("build", "--quiet", "--tag", "by-hand", ...flags, ".");
    const builtMs = performance.now() - from;
    return builtMs + (await start(text));
  };
  return { start, deploy };
}
