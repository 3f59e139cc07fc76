import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../../src/contract/routes.ts";
import { runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import type { TestApp, TestPlatform } from "../../test/e2e/platform.ts";
import { startVisitedPlatform } from "../../test/e2e/ways.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../../test/support/docker-engine.ts";
import { provideImage } from "../images/provide-image.ts";
import { environment, freshFolder, lockedApp, pushLive, served, total } from "./deploy.ts";
import { benchSize, inTurns, medians, timed, timeRow, type BenchRow } from "./row.ts";

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
  await using platform = await startVisitedPlatform({ runtime: "docker", over: "http" }, []);
  await using engine = await startTestEngine();
  const parent = await provideImage(engine.socket, "node");
  const prepare = (slug: string) => lockedApp(platform, slug, undefined, { Dockerfile: dockerfileOf(parent) });
  const live = async (app: TestApp, slug: string, text = slug) => total(await pushLive(platform, app, { slug, text }));
  const hand = handOn(engine);
  let app = await prepare("cold-0");
  // The first round is not counted: its build also starts Berth's build engine.
  const cold = await inTurns(
    rounds,
    {
      async theirs(round) {
        if (round > 0) app = await prepare(`cold-${round}`);
        return hand.deploy(app, `cold-${round}`, ["--no-cache"]);
      },
      ours: (round) => live(app, `cold-${round}`),
    },
    1,
  );
  app = await prepare("warm");
  const warm = await inTurns(
    rounds,
    {
      async theirs(round) {
        await app.commit({ "text.txt": `warm ${round}` });
        return hand.deploy(app, `warm ${round}`, []);
      },
      ours: (round) => live(app, "warm", `warm ${round}`),
    },
    1,
  );
  const starts = await inTurns(rounds, {
    theirs: () => hand.start(`warm ${rounds}`),
    async ours() {
      await scale(platform, "warm", 1);
      return scale(platform, "warm", 2);
    },
  });
  const against = "git push, docker build and docker run by hand";
  return [
    timeRow("push of a Dockerfile to first 200, nothing cached", against, medians(cold)),
    timeRow("push of a Dockerfile to first 200, only the source changed", against, medians(warm)),
    timeRow("a second replica until it is healthy", "docker run of the same image to first 200", medians(starts)),
  ];
}

/** Returns how long the project takes to have this many ready replicas, in milliseconds. */
async function scale(platform: TestPlatform, slug: string, replicas: number): Promise<number> {
  const areReady = async () => {
    const { body } = await platform.call<Result<"overview.get">>("GET", "/v1/overview");
    return body.projects.find((each) => each.slug === slug)?.replicas.ready === replicas ? true : undefined;
  };
  return timed(async () => {
    const { status } = await platform.call("PUT", `/v1/projects/${slug}/scale`, { replicas });
    if (status !== 200) throw new Error(`the project was not scaled: ${status}`);
    if (!(await until(areReady, { timeoutMs: 60_000, atMostMs: 20 }))) throw new Error("the replicas are not ready");
  });
}

const dockerfileOf = (parent: string) => `FROM ${parent}
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build
EXPOSE 3000
CMD ["node", "server.js"]
`;

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
      await served(`http://${address}:3000/`, text);
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
