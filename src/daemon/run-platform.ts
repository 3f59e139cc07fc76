import { flushCompileCache } from "node:module";
import { banner } from "./banner.ts";
import { pathsIn, type Config } from "./config.ts";
import { deployExample } from "./first-start.ts";
import { createEndRequests, createShutdown, EndedAtStart, type Shutdown } from "./shutdown.ts";
import { exampleSource, startPlatform, type RunningPlatform } from "./start.ts";

type Say = (line: string) => void;

/** Starts the platform, prints the banner, and resolves when it has ended on request. */
export async function runPlatform(config: Config, say: Say): Promise<void> {
  const shutdown = createShutdown((line) => process.stderr.write(`${line}\n`));
  const asked = endOnSignals(shutdown, say);
  try {
    const running = await shutdown.during(() => startPlatform(config, shutdown, say));
    if (!(await before(asked, running.reconcilers.start()))) return;
    say(await banner(running));
    if (config.example && running.git !== null) await showExample(running, say);
    flushCompileCache();
    await asked;
  } catch (fault) {
    if (!(fault instanceof EndedAtStart)) throw fault;
  } finally {
    await shutdown.run();
  }
}

/** Returns false if `end` comes first. */
const before = (end: Promise<void>, work: Promise<void>) =>
  Promise.race([work.then(() => true), end.then(() => false)]);

async function showExample(running: RunningPlatform, say: Say): Promise<void> {
  const { config, platform, parts } = running;
  const outcome = await deployExample({
    db: platform.db,
    log: platform.log,
    gitBin: parts.git ?? "git",
    baseUrl: `http://${config.listen}:${config.httpPort}`,
    tokenFile: pathsIn(config.dataDir).adminToken,
    source: exampleSource,
    onLine: (line) => say(`  example | ${line}`),
  });
  if (outcome === "deployed") say(`\nThe example is live: ${platform.appUrl(`example.${config.domain}`)}\n`);
}

/** Resolves when the process receives a signal to end. A second request after that exits at once. */
function endOnSignals(shutdown: Shutdown, say: Say): Promise<void> {
  const requests = createEndRequests();
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals) => {
      const request = requests.add();
      if (request === "second") process.exit(130);
      if (request === "repeated") return;
      say(`\nStopping (${signal}). Press Ctrl-C again after two seconds to exit at once.`);
      resolve();
      void shutdown.run().then(() => process.exit(0));
    };
    process.on("SIGINT", end);
    process.on("SIGTERM", end);
    process.on("SIGHUP", end);
  });
}
