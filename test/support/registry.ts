import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { runOk, start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { freePort } from "./free-port.ts";
import { tarOf, type Member } from "./tar.ts";

/** Debian's image registry with TLS, where every pull and push needs a login. */
export interface TestRegistry {
  /** The prefix of image names: an address of this machine, which the network of builds must be allowed to reach, and a port. */
  readonly host: string;
  /** The certificate authority as a PEM file. */
  readonly caFile: string;
  readonly username: string;
  readonly password: string;
  /** Stores an image of one layer under `repository:tag` and resolves with its digest. */
  push(name: string, image: PushedImage): Promise<string>;
  close(): Promise<void>;
}

export interface PushedImage {
  readonly members: readonly Member[];
  /** The image's configuration: `Cmd`, `ExposedPorts` … */
  readonly config: object;
  /** Default: this machine's architecture. */
  readonly architecture?: string;
}

const username = "puller";
const password = "pull-secret-11";
// The bcrypt hash of the password; the registry accepts no other kind.
const htpasswd = `${username}:$2b$04$GAa2JV3wmfpeHLQ7TEkSi.BNT4BXIntA4QljJZIqnfdAnmLzxqbuu\n`;

const ownAddress = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

/** Why tests of a registry are skipped; false where they run. */
export const withoutRegistry: string | false =
  (!existsSync("/usr/bin/docker-registry") && "SKIPPED: Debian's package docker-registry is not installed") ||
  (ownAddress === undefined && "SKIPPED: this machine has only the loopback address");

/** Starts a registry in a temporary folder. Call `close` in `after`. */
export async function startTestRegistry(): Promise<TestRegistry> {
  const dir = await mkdtemp(join(tmpdir(), "berth-registry-"));
  const host = `${ownAddress}:${await freePort()}`;
  await writeFile(join(dir, "htpasswd"), htpasswd);
  const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=registry"];
  const files = ["-keyout", join(dir, "key.pem"), "-out", join(dir, "ca.pem")];
  await runOk({ file: "openssl", args: [...args, ...files, "-addext", `subjectAltName=IP:${ownAddress}`] });
  const settings = {
    version: "0.1",
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: join(dir, "data") } },
    http: { addr: host, tls: { certificate: join(dir, "ca.pem"), key: join(dir, "key.pem") } },
    auth: { htpasswd: { realm: "test", path: join(dir, "htpasswd") } },
  };
  // Every JSON document is valid YAML.
  await writeFile(join(dir, "config.yml"), JSON.stringify(settings));
  const server = start({ file: "/usr/bin/docker-registry", args: ["serve", join(dir, "config.yml")] });
  server.stdout.resume();
  server.stderr.resume();
  const ended = new Promise((resolve) => server.once("close", resolve));
  const caFile = join(dir, "ca.pem");
  const call = caller(host, readFileSync(caFile));
  const close = async () => {
    server.kill("SIGKILL");
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  const isUp = () =>
    call("GET", "/v2/").then(
      ({ status }) => (status === 200 ? (true as const) : undefined),
      () => undefined,
    );
  if (!(await until(isUp, { timeoutMs: 120_000 }))) {
    await close();
    throw new Error("the registry did not start");
  }
  return { host, caFile, username, password, close, push: (name, image) => push(call, name, image) };
}

type Call = (
  method: string,
  path: string,
  body?: Buffer,
  type?: string,
) => Promise<{ status: number; location: string }>;

function caller(host: string, ca: Buffer): Call {
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  return (method, path, body, type = "application/octet-stream") =>
    new Promise((resolve, reject) => {
      const headers = { authorization, "content-type": type, "content-length": body?.length ?? 0 };
      const sent = request(new URL(path, `https://${host}`), { method, headers, ca }, (answer) => {
        void text(answer).then(
          () => resolve({ status: answer.statusCode ?? 0, location: answer.headers.location ?? "" }),
          reject,
        );
      });
      sent.once("error", reject).end(body);
    });
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** OCI distribution specification: "Pushing Blobs", "Pushing Manifests". */
async function push(call: Call, name: string, { members, config, architecture }: PushedImage): Promise<string> {
  const [repository = "", tag = "latest"] = name.split(":");
  const own = { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch;
  const layer = tarOf(...members);
  const described = Buffer.from(
    JSON.stringify({
      ...{ architecture: architecture ?? own, os: "linux", config },
      ...{ rootfs: { type: "layers", diff_ids: [digestOf(layer)] } },
    }),
  );
  for (const blob of [layer, described]) {
    const { location } = await call("POST", `/v2/${repository}/blobs/uploads/`);
    const digest = encodeURIComponent(digestOf(blob));
    const { status } = await call("PUT", `${location}${location.includes("?") ? "&" : "?"}digest=${digest}`, blob);
    if (status !== 201) throw new Error(`the registry refused a blob with status ${status}`);
  }
  const type = "application/vnd.docker.distribution.manifest.v2+json";
  const part = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: digestOf(blob) });
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: type },
      config: part("application/vnd.docker.container.image.v1+json", described),
      layers: [part("application/vnd.docker.image.rootfs.diff.tar", layer)],
    }),
  );
  const { status } = await call("PUT", `/v2/${repository}/manifests/${tag}`, manifest, type);
  if (status !== 201) throw new Error(`the registry refused a manifest with status ${status}`);
  return digestOf(manifest);
}
