import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { constants, zstdCompress } from "node:zlib";
import { create } from "tar";
import type { Staged } from "./stage-release.ts";

const compress = promisify(zstdCompress);
const installer = resolve(import.meta.dirname, "../../install.sh");

// 48 MB in 20 seconds; level 19 saves 6 MB and takes five minutes.
const level = 9;

/** Packs a staged folder into `berth-VERSION-linux-ARCH.tar.zst` below `to` and returns its path. Equal files make equal bytes. */
export async function packRelease(
  folder: string,
  to: string,
  { version, timeMs, arch }: Staged & { readonly arch: string },
): Promise<string> {
  const file = join(to, `berth-${version}-linux-${arch}.tar.zst`);
  const paths = (await readdir(folder, { recursive: true })).toSorted();
  // `portable` leaves out who packed it, when, and with which umask.
  const tar = create(
    { cwd: folder, portable: true, mtime: new Date(timeMs), noDirRecurse: true, prefix: `berth-${version}` },
    paths,
  );
  // In one piece: what a stream writes depends on the pieces that it gets, and those on time.
  await writeFile(file, await compress(await buffer(tar), { params: { [constants.ZSTD_c_compressionLevel]: level } }));
  return file;
}

/** Writes `SHA256SUMS` of the archives and of `install.sh`, which gets the public key, and `SHA256SUMS.sig`, the signature over it. */
export async function signRelease(to: string, archives: readonly string[], privateKey: string): Promise<void> {
  const key = createPrivateKey(privateKey);
  const script = (await readFile(installer, "utf8")).replace(
    /^release_key=.*$/m,
    `release_key='${publicKeyOf(privateKey)}'`,
  );
  await writeFile(join(to, "install.sh"), script, { mode: 0o755 });
  const names = [...archives.map((path) => path.slice(to.length + 1)), "install.sh"].toSorted();
  const lines = await Promise.all(names.map(async (name) => `${await sha256(join(to, name))}  ${name}\n`));
  const sums = Buffer.from(lines.join(""));
  await writeFile(join(to, "SHA256SUMS"), sums);
  await writeFile(join(to, "SHA256SUMS.sig"), sign(null, sums, key));
}

/** Returns the public key of a private one, both as PEM. Throws unless it is an ed25519 key. */
export function publicKeyOf(privateKey: string): string {
  const key = createPublicKey(privateKey);
  if (key.asymmetricKeyType !== "ed25519") throw new Error("The key of a release must be an ed25519 key.");
  return key.export({ type: "spki", format: "pem" }).toString().trim();
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
