import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { startTestEngine, type TestEngine } from "../../../test/support/docker-engine.ts";
import { provideImage } from "../../../tools/images/provide-image.ts";
import { systemPath } from "../../kit/exec.ts";
import { createDockerBuilder, type DockerBuilder, type DockerBuilderOptions } from "./docker-builder.ts";

/** A builder with engines of its own, for tests. */
export interface TestDockerBuilder {
  readonly builder: DockerBuilder;
  readonly options: DockerBuilderOptions;
  readonly runEngine: TestEngine;
  /** The names of our images, which Dockerfiles of tests start from. */
  readonly images: Readonly<Record<"debian" | "node", string>>;
  close(): Promise<void>;
}

/** Languages whose parent images only some tests need: each takes a while to make. */
export type FurtherImage = "python" | "golang" | "ruby" | "php";

/** Makes a real builder with two real engines and images of this machine's Debian packages. */
export async function makeTestDockerBuilder({
  caFile,
  further = [],
  ...changes
}: Partial<DockerBuilderOptions> & {
  readonly caFile?: string;
  readonly further?: readonly FurtherImage[];
} = {}): Promise<TestDockerBuilder> {
  const runEngine = await startTestEngine();
  const images = {
    debian: await provideImage(runEngine.socket, "debian"),
    node: await provideImage(runEngine.socket, "node"),
  };
  const made = new Map<FurtherImage, string>();
  for (const name of further) made.set(name, await provideImage(runEngine.socket, name));
  const root = await mkdtemp(join(tmpdir(), "berth-docker-builder-"));
  const program = (name: string) => findProgram(name);
  const options: DockerBuilderOptions = {
    runSocket: runEngine.socket,
    buildsDir: join(root, "builds"),
    engine: {
      ...{ dir: join(root, "engine"), nodeBin: process.execPath, memoryBytes: 1024 ** 3, processes: 2000 },
      ...{ fileBytes: 1024 ** 3, cacheBytes: 2 * 1024 ** 3 },
      ...(caFile === undefined ? {} : { caFile }),
      parts: {
        ...{ bwrap: null, pasta: null, socat: null },
        ...{ setpriv: program("setpriv"), nft: program("nft"), ip: program("ip") },
      },
    },
    parents: {
      ...{ node: images.node, plain: images.debian },
      ...{ python: made.get("python") ?? "python:3.11", go: made.get("golang") ?? "golang:1.19" },
      ...{ rust: "rust:1", java: "maven:3", ruby: made.get("ruby") ?? "ruby:3", php: made.get("php") ?? "composer:2" },
    },
    ...{ sharedImages: [], privateRegistries: [], packageEnv: {}, certificates: null },
    diskFloorBytes: 1024 ** 2,
    ...{ maxSourceBytes: 256 * 1024 ** 2, maxImageBytes: 1024 ** 3 },
    ...changes,
  };
  const builder = await createDockerBuilder(options);
  const close = async () => {
    await builder.close();
    await runEngine.close();
    await rm(root, { recursive: true, force: true });
  };
  return { builder, options, runEngine, images, close };
}

function findProgram(name: string): string | null {
  const folders = (process.env["PATH"] ?? systemPath).split(delimiter);
  return (
    [...folders, "/usr/sbin", "/sbin"].map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null
  );
}
