import { Readable } from "node:stream";
import type { Storage } from "../../ports/storage.ts";
import { decrypted, encrypted } from "./age-stream.ts";

export interface AgeStorageOptions {
  readonly storage: Storage;
  /** Returns the age recipients that can open what is stored from now on. */
  readonly recipients: () => Promise<readonly string[]>;
  /** Returns the age identities to open files with. */
  readonly identities: () => readonly string[];
  /** Whether the file with this key is stored as it is. */
  readonly isPlain: (key: string) => boolean;
}

/**
 * Keeps files in another storage as age files (age-encryption.org/v1), which the program `age` opens too. Sizes are those of the content.
 * Files that were stored plain are given back as they are; a changed one fails with `ArchiveDamaged`.
 */
export function createAgeStorage({ storage, recipients, identities, isPlain }: AgeStorageOptions): Storage {
  return {
    async put(key, content, signal) {
      if (isPlain(key)) return storage.put(key, content, signal);
      let size_bytes = 0;
      const counted = async function* () {
        for await (const chunk of content as AsyncIterable<Buffer>) {
          size_bytes += chunk.length;
          yield chunk;
        }
      };
      try {
        await storage.put(key, encryptTo(await recipients(), counted()), signal);
        return { size_bytes };
      } finally {
        content.destroy();
      }
    },

    async open(key, signal) {
      const source = await storage.open(key, signal);
      if (isPlain(key)) return source;
      const content = Readable.from(decrypted(source as AsyncIterable<Buffer>, identities), { objectMode: false });
      return content.once("close", () => source.destroy());
    },

    delete: (key) => storage.delete(key),
    sweep: (isBusy) => storage.sweep(isBusy),
    free: () => storage.free(),
  };
}

/** Returns the content as an age file that each of the recipients opens. */
export const encryptTo = (recipients: readonly string[], content: AsyncIterable<Buffer>): Readable =>
  Readable.from(encrypted(content, recipients), { objectMode: false });
