import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { startTestEngine, type TestEngine } from "./docker-engine.ts";
import { provideImage } from "../../tools/images/provide-image.ts";
import { systemPath } from "../../src/kit/exec.ts";
import {
  createDockerBuilder,
  type DockerBuilder,
  type DockerBuilderOptions,
} from "../../src/adapters/builder-docker/docker-builder.ts";

/** A builder with its own engines, for tests. */
export interface TestDockerBuilder {
  readonly builder: DockerBuilder;
  readonly options: DockerBuilderOptions;
  readonly runEngine: TestEngine;
  /** Names of our images, which the tests' Dockerfiles start from. */
  readonly images: Readonly<Record<TestImage, string>>;
  close(): Promise<void>;
}

/** Names of parent images that a test does not provide. */
const absent = {
  ...{ debian: "debian:12", node: "node:24", python: "python:3.11", golang: "golang:1.19" },
  ...{ ruby: "ruby:3", php: "composer:2" },
};

export type TestImage = keyof typeof absent;

/** Creates a builder with two engines and images from this machine's Debian packages. Each of them takes a while. */
export async function makeTestDockerBuilder({
  caFile,
  provided = ["debian", "node"],
  ...changes
}: Partial<DockerBuilderOptions> & {
  readonly caFile?: string;
  readonly provided?: readonly TestImage[];
} = {}): Promise<TestDockerBuilder> {
  const runEngine = await startTestEngine();
  const images = { ...absent };
  for (const name of provided) images[name] = await provideImage(runEngine.socket, name);
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
      ...{ node: images.node, plain: images.debian, python: images.python, go: images.golang },
      ...{ rust: "rust:1", java: "maven:3", ruby: images.ruby, php: images.php },
    },
    ...{ sharedImages: [], privateRegistries: [], packageEnv: {}, certificates: null },
    diskFloorBytes: 1024 ** 2,
    buildDiskBytes: 1024 ** 3,
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
