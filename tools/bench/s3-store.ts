import { createServer } from "node:tls";
import { connect, type AddressInfo } from "node:net";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { createAgeStorage } from "../../src/adapters/storage-age/age-storage.ts";
import { send } from "../../src/adapters/storage-s3/requests.ts";
import { createS3Storage } from "../../src/adapters/storage-s3/s3-storage.ts";
import { runOk } from "../../src/kit/exec.ts";
import { startSwift } from "../../test/support/swift.ts";

const bucket = "bench";

/** Starts a real S3 server, with a bucket in which Berth stores as it does (encrypted), and with TLS, which pgBackRest demands. */
export async function startS3Store() {
  const server = await startSwift();
  const dir = await mkdtemp(join(tmpdir(), "berth-bench-tls-"));
  await send({ ...server, bucket }, { method: "PUT" });
  const identity = await generateX25519Identity();
  const recipients = [await identityToRecipient(identity)];
  const [key, cert] = [join(dir, "key"), join(dir, "certificate")];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=store"];
  await runOk({ file: "openssl", args: ["req", ...kind, "-keyout", key, "-out", cert] });
  const port = Number(new URL(server.endpoint).port);
  const front = createServer({ key: await readFile(key), cert: await readFile(cert) }, (socket) => {
    const to = connect(port, "127.0.0.1");
    socket.pipe(to).pipe(socket);
    for (const [one, other] of [
      [socket, to],
      [to, socket],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  });
  await new Promise<void>((listening) => front.listen(0, "127.0.0.1", listening));
  const s3 = [
    ...["type=s3", `s3-bucket=${bucket}`, "s3-endpoint=127.0.0.1", `s3-region=${server.region}`, "s3-uri-style=path"],
    ...[`s3-key=${server.accessKeyId}`, `s3-key-secret=${server.secretKey}`, "storage-verify-tls=n"],
    `storage-port=${(front.address() as AddressInfo).port}`,
  ];
  return {
    storage: createAgeStorage({
      storage: createS3Storage({ ...server, bucket, prefix: "berth" }),
      ...{ recipients: async () => recipients, identities: () => [identity], isPlain: () => false },
    }),
    /** What pgBackRest's configuration says about its repository. */
    repository: s3.map((line) => `repo1-${line}`).join("\n"),
    async [Symbol.asyncDispose]() {
      front.close();
      await server.close();
      await rm(dir, { recursive: true });
    },
  };
}
