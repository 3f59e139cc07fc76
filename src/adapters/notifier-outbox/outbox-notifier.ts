import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../kit/log.ts";
import type { Message, Notifier } from "../../ports/notifier.ts";

export interface OutboxOptions {
  /** The folder for messages; created if missing, with access for its owner only. */
  readonly dir: string;
  /** The operator's own log. Its readers may act on the links in the messages. */
  readonly log: Log;
}

/** Writes messages to files (mode 0600) and to the log: for a machine whose operator works on it. */
export function createOutboxNotifier({ dir, log }: OutboxOptions): Notifier {
  return {
    name: "outbox",
    async deliver(message) {
      try {
        await write(dir, message);
        await sweep(dir);
      } catch (error) {
        return {
          outcome: "failed",
          reason: `The outbox cannot be written (${(error as NodeJS.ErrnoException).code}).`,
        };
      }
      log.info(message.url === null ? {} : { open: message.url }, message.subject);
      return { outcome: "delivered" };
    },
  };
}

const keptMs = 7 * 24 * 60 * 60 * 1000;
const namePattern = /^\d{8}T\d{6}Z-[a-z_]+-\w+\.txt$/;

// Writes to a temporary file and renames it, so that a program that watches the folder sees complete messages only.
async function write(dir: string, message: Message): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const time = message.created_at.replaceAll(/[-:]|\.\d+/g, "");
  const draft = join(dir, `.${randomBytes(6).toString("hex")}`);
  await writeFile(draft, textOf(message), { flag: "wx", mode: 0o600, flush: true });
  await rename(draft, join(dir, `${time}-${message.kind}-${message.id}.txt`));
}

function textOf({ subject, text, url }: Message): string {
  return [subject, "", text, ...(url === null ? [] : ["", url]), ""].join("\n");
}

async function sweep(dir: string): Promise<void> {
  const oldestMs = Date.now() - keptMs;
  for (const name of await readdir(dir)) {
    if (!namePattern.test(name)) continue;
    const { mtimeMs } = await stat(join(dir, name));
    if (mtimeMs < oldestMs) await rm(join(dir, name), { force: true });
  }
}
