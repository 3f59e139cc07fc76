import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../kit/exec.ts";

/** Certificate of the registry's authority, and client certificate and key of the machines that may use it. PEM. */
export type RegistryCertificates = Awaited<ReturnType<typeof makeRegistryCertificates>>;

const days = "7300";

/** Creates, where missing, an authority, the registry's certificate for this address and one for machines. */
export async function makeRegistryCertificates(dir: string, address: string) {
  const path = (name: string) => join(dir, name);
  if (!existsSync(path("ca.pem"))) await makeAuthority(path);
  if (!existsSync(path("client.pem"))) await makeSigned(path, { name: "client", use: "clientAuth" });
  const addressFile = path("address");
  if (!existsSync(addressFile) || readFileSync(addressFile, "utf8") !== address) {
    await makeSigned(path, { name: "server", use: "serverAuth", more: `subjectAltName=IP:${address}` });
    await writeFile(addressFile, address);
  }
  const [ca = "", cert = "", key = ""] = ["ca.pem", "client.pem", "client.key"].map((name) =>
    readFileSync(path(name), "utf8"),
  );
  return { ca, cert, key };
}

type PathOf = (name: string) => string;

const keyKind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Writes the certificate last: after a crash in between it is missing, and the next start creates key and certificate again. */
async function makeAuthority(path: PathOf): Promise<void> {
  const subject = ["-days", days, "-subj", "/CN=Berth images"];
  const files = ["-keyout", path("ca.key"), "-out", path("ca.new")];
  await runOk({ file: "openssl", args: ["req", "-x509", ...keyKind, ...subject, ...files] });
  await rename(path("ca.new"), path("ca.pem"));
}

async function makeSigned(
  path: PathOf,
  { name, use, more = "" }: { readonly name: string; readonly use: string; readonly more?: string },
): Promise<void> {
  const request = ["-subj", `/CN=Berth ${name}`, "-keyout", path(`${name}.key`), "-out", path(`${name}.csr`)];
  await runOk({ file: "openssl", args: ["req", ...keyKind, ...request] });
  await writeFile(path(`${name}.ext`), `extendedKeyUsage=${use}\n${more}\n`);
  const authority = ["-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial"];
  const files = ["-in", path(`${name}.csr`), "-out", path(`${name}.new`), "-extfile", path(`${name}.ext`)];
  await runOk({ file: "openssl", args: ["x509", "-req", "-days", days, ...authority, ...files] });
  await rename(path(`${name}.new`), path(`${name}.pem`));
}

export async function trustRegistry(folder: string, { ca, cert, key }: RegistryCertificates): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "ca.crt"), ca);
  await writeFile(join(folder, "client.cert"), cert);
  await writeFile(join(folder, "client.key"), key, { mode: 0o600 });
}
