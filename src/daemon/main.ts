import { banner } from "./banner.ts";
import { pathsIn, readConfig, type Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";
import { deployExample } from "./first-start.ts";
import { createShutdown, type Shutdown } from "./shutdown.ts";
import { exampleSource, startPlatform, type Platform } from "./start.ts";

const usage = `Usage: berthd start | rotate-secrets | --help

  start            start the platform in the foreground (the default)
  rotate-secrets   seal all secrets in the database under a new key

Settings are environment variables; docs/config.md lists them.`;

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function main(args: readonly string[]): Promise<void> {
  const [verb = "start"] = args;
  if (verb === "--help" || verb === "help") return say(usage);
  if (verb === "start") return start(readConfigOrRefuse());
  if (verb === "rotate-secrets") return (await import("./rotate-secrets.ts")).rotateSecrets(readConfigOrRefuse(), say);
  throw new StartRefused(`berthd does not know "${verb}".\n${usage}`);
}

function readConfigOrRefuse(): Config {
  try {
    return readConfig();
  } catch (error) {
    throw new StartRefused((error as Error).message);
  }
}

async function start(config: Config): Promise<void> {
  const shutdown = createShutdown((line) => process.stderr.write(`${line}\n`));
  const asked = endOnSignals(shutdown);
  try {
    const platform = await startPlatform(config, shutdown, say);
    say(await banner(platform));
    if (config.example) await showExample(platform);
    await asked;
  } finally {
    await shutdown.run();
  }
}

async function showExample(platform: Platform): Promise<void> {
  const { config, world, parts } = platform;
  const outcome = await deployExample({
    db: world.db,
    log: world.log,
    gitBin: parts.git ?? "git",
    baseUrl: `http://${config.listen}:${config.httpPort}`,
    tokenFile: pathsIn(config.dataDir).adminToken,
    source: exampleSource,
    onLine: (line) => say(`  example | ${line}`),
  });
  if (outcome === "deployed") say(`\nThe example is live: ${world.appUrl(`example.${config.domain}`)}\n`);
}

/** Resolves when the process is asked to end. A second request ends it at once. */
function endOnSignals(shutdown: Shutdown): Promise<void> {
  let asked = false;
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals) => {
      if (asked) process.exit(130);
      asked = true;
      say(`\nEnding (${signal}); once more ends at once.`);
      resolve();
      void shutdown.run().then(() => process.exit(0));
    };
    process.on("SIGINT", end);
    process.on("SIGTERM", end);
    process.on("SIGHUP", end);
  });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const text =
    error instanceof StartRefused
      ? error.message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error);
  process.stderr.write(`berthd: ${text}\n`);
  process.exit(1);
});
