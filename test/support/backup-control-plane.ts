// A control plane that processes backups and branches, or stores archives, until it reaches a step, prints `reached`, and then blocks until the test kills it.
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import {
  createLocalPostgresHost,
  type LocalPostgresHostOptions,
} from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { createDiskStorage } from "../../src/adapters/storage-disk/disk-storage.ts";
import { formatIdentity, ownIdentity } from "../../src/kit/processes.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { backupsTask } from "../../src/reconcile/backups/backups-task.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import type { CopyMethod, DatabaseHistory } from "../../src/ports/postgres-host.ts";
import { createDriver } from "../../src/reconcile/driver.ts";
import { openDatabase } from "../../src/store/database.ts";
import { archiveSteps, type Step } from "./control-plane-steps.ts";
import { warningsLog } from "./warnings-log.ts";
import { platformDouble } from "./platform-double.ts";
import { storagesDouble, wakeupsDouble } from "./port-doubles.ts";

/** The JSON document on standard input. */
export interface ControlPlaneInput {
  readonly connection: Record<string, unknown>;
  readonly host: LocalPostgresHostOptions;
  readonly password: string;
  readonly backupsDir: string;
  readonly step: Step;
}

const input = (await json(process.stdin)) as ControlPlaneInput;

async function reached(step: Step): Promise<void> {
  if (input.step !== step) return;
  process.stdout.write("reached\n");
  setInterval(() => {}, 1000);
  await new Promise(() => {});
}

function host() {
  const real = createLocalPostgresHost(input.host);
  return {
    ...real,
    history: (id: string) => {
      const history = real.history(id);
      return history && { ...history, branch: branchOf(history), recover: recoverOf(history), ...archiveOf(history) };
    },
    ensure: async (...args: Parameters<typeof real.ensure>) => {
      const endpoint = await real.ensure(...args);
      await reached("started");
      return endpoint;
    },
    dump: async (...args: Parameters<typeof real.dump>) => {
      await reached("dumping");
      return real.dump(...args);
    },
    createDatabase: async (...args: Parameters<typeof real.createDatabase>) => {
      await real.createDatabase(...args);
      await reached("creating");
    },
    restore: async (
      spec: Parameters<typeof real.restore>[0],
      name: string,
      options: Parameters<typeof real.restore>[2],
    ) => {
      await real.restore(spec, name, { ...options, archive: stalling("restoring", options.archive) });
      await reached("restored");
    },
    countRows: async (...args: Parameters<typeof real.countRows>) => {
      const counts = await real.countRows(...args);
      await reached("counting");
      return counts;
    },
    dropDatabase: async (...args: Parameters<typeof real.dropDatabase>) => {
      if ((await real.listDatabases(args[0])).includes(args[1])) await reached("dropping");
      await real.dropDatabase(...args);
    },
  };
}

function branchOf({ branch }: DatabaseHistory): DatabaseHistory["branch"] {
  return async (spec, target, options) => {
    const announce = async (method: CopyMethod) => {
      await options.announce(method);
      await reached("announcing");
      // Killed at a random moment of the copy or of its recovery.
      if (input.step === "copying") process.stdout.write("reached\n");
    };
    await branch(spec, target, { ...options, announce });
    await reached(input.step === "copying" ? "copying" : "branched");
  };
}

function recoverOf({ recover }: DatabaseHistory): DatabaseHistory["recover"] {
  return async (...args) => {
    // Killed at a random moment of it.
    if (input.step === "recovering") process.stdout.write("reached\n");
    const recovered = await recover(...args);
    await reached(input.step === "recovering" ? "recovering" : "recovered");
    return recovered;
  };
}

function archiveOf(history: DatabaseHistory): Pick<DatabaseHistory, "readSegment" | "release" | "copy"> {
  return {
    async readSegment(...args) {
      await reached("reading log");
      return history.readSegment(...args);
    },
    async release(...args) {
      await reached("releasing");
      await history.release(...args);
      await reached("released");
    },
    copy: (spec, options) =>
      history.copy(spec, {
        ...options,
        consume: (archive) => options.consume(stalling("copying folder", archive)),
      }),
  };
}

function storage() {
  const real = createDiskStorage({ dir: input.backupsDir });
  return {
    ...real,
    put: async (key: string, content: Parameters<typeof real.put>[1], signal?: AbortSignal) => {
      const [writing, stored] = stepsOf(key);
      const result = await real.put(key, writing === null ? content : stalling(writing, content), signal);
      await reached(stored);
      return result;
    },
  };
}

function stepsOf(key: string): readonly [Step | null, Step] {
  if (!key.startsWith("archive/")) return ["writing", "stored"];
  if (key.endsWith("/newest.json")) return [null, "noted copy"];
  return key.endsWith(".tar.zst") ? [null, "stored copy"] : ["writing log", "stored log"];
}

/** Passes the first chunk and then stalls at the step. */
function stalling(step: Step, content: Readable): Readable {
  const pieces = async function* () {
    for await (const piece of content) {
      yield piece as Buffer;
      await reached(step);
    }
  };
  return Readable.from(pieces(), { objectMode: false });
}

const { db } = openDatabase({ connection: input.connection, log: warningsLog });
const wakeups = wakeupsDouble();
const platform = platformDouble({
  db,
  vault: { seal: (_, _name, text) => Buffer.from(text), open: () => input.password, currentKey: () => 1 },
  wakeups,
  log: warningsLog,
  owner: formatIdentity(ownIdentity()),
  ports: { postgresHost: host(), storages: storagesDouble({ disk: storage() }) },
});
const isArchiving = (archiveSteps as readonly Step[]).includes(input.step);
await createDriver({
  tasks: isArchiving ? [archivesTask(platform)] : [backupsTask(platform, () => {}), branchesTask(platform, () => {})],
  wakeups,
  log: warningsLog,
}).start();
