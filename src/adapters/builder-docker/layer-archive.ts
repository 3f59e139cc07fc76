import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { tarHeader, tarPadding } from "../../kit/tar-member.ts";

/**
 * Streams an image in the format of `POST /images/load`, without the layers that the other engine has: that engine looks a layer up by its
 * content's digest before it reads the file. The engine's own export writes every layer to disk twice, including those of parent images.
 * Reads the `overlay2` store in `dataRoot`: a layer's files, and in tar-split's metadata everything between them.
 */
export async function* layerArchive(dataRoot: string, id: string, has: HasLayers): AsyncGenerator<Buffer> {
  const hex = id.slice("sha256:".length);
  const store = join(dataRoot, "image", "overlay2");
  const config = await readFile(join(store, "imagedb", "content", "sha256", hex));
  const layers = (JSON.parse(config.toString()) as { rootfs: { diff_ids: string[] } }).rootfs.diff_ids;
  for (const index of layers.keys()) {
    if (has(layers.slice(0, index + 1))) continue;
    const notes = join(store, "layerdb", "sha256", chainOf(layers.slice(0, index + 1)));
    const files = join(dataRoot, "overlay2", await readFile(join(notes, "cache-id"), "utf8"), "diff");
    const size = await layerSize(notes);
    yield tarHeader(nameOf(index), size);
    yield* layerBytes(notes, files);
    yield tarPadding(size);
  }
  const manifest = [{ Config: `${hex}.json`, RepoTags: null, Layers: layers.map((_, index) => nameOf(index)) }];
  yield member(`${hex}.json`, config);
  yield member("manifest.json", Buffer.from(JSON.stringify(manifest)));
  yield Buffer.alloc(1024);
}

/** Returns whether the other engine has an image that begins with these layers. */
export type HasLayers = (layers: readonly string[]) => boolean;

const nameOf = (index: number): string => `${index}/layer.tar`;

/** Returns the layer's ChainID (OCI image specification), which covers the layers below it. */
function chainOf(layers: readonly string[]): string {
  return layers
    .reduce((below, layer) => {
      return below === "" ? layer : `sha256:${createHash("sha256").update(`${below} ${layer}`).digest("hex")}`;
    }, "")
    .slice("sha256:".length);
}

/** A line of tar-split's metadata: raw bytes (2), or a reference to a file's content (1). */
interface Note {
  readonly type: 1 | 2;
  readonly name?: string;
  /** Base64, for names that are not UTF-8. */
  readonly name_raw?: string;
  readonly size?: number;
  readonly payload: string | null;
}

async function* notesIn(folder: string): AsyncGenerator<Note> {
  const input = createReadStream(join(folder, "tar-split.json.gz")).pipe(createGunzip());
  for await (const line of createInterface({ input })) if (line !== "") yield JSON.parse(line) as Note;
}

async function layerSize(notes: string): Promise<number> {
  let size = 0;
  for await (const { type, payload, size: fileSize = 0 } of notesIn(notes))
    size += type === 2 ? Buffer.byteLength(payload ?? "", "base64") : fileSize;
  return size;
}

async function* layerBytes(notes: string, files: string): AsyncGenerator<Buffer> {
  for await (const { type, payload, size = 0, name = "", name_raw: raw } of notesIn(notes)) {
    if (type === 2) yield Buffer.from(payload ?? "", "base64");
    else if (size > 0) {
      const path = raw === undefined ? Buffer.from(name) : Buffer.from(raw, "base64");
      yield* createReadStream(Buffer.concat([Buffer.from(`${files}/`), path])) as AsyncIterable<Buffer>;
    }
  }
}

function member(name: string, content: Buffer): Buffer {
  return Buffer.concat([tarHeader(name, content.length), content, tarPadding(content.length)]);
}
