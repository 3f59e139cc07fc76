import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

/**
 * An authenticator in software, as a browser on `origin` uses it: one passkey of the algorithm ES256
 * (https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data).
 */
export function softAuthenticator(origin: string) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomBytes(16);
  let counter = 0;
  const answer = (type: string, challenge: string, more: { verified?: boolean; origin?: string }) => {
    const clientData = Buffer.from(
      JSON.stringify({ type, challenge, origin: more.origin ?? origin, crossOrigin: false }),
    );
    const flags = 0x01 | (more.verified === false ? 0 : 0x04);
    return { clientData, flags };
  };
  const head = (rpId: string, flags: number) => {
    counter += 1;
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), uint32(counter)]);
  };
  return {
    id: id.toString("base64url"),
    /** Answers `navigator.credentials.create`. */
    create({ challenge, rp }: { challenge: string; rp: { id: string } }, more: Deviation = {}) {
      const { clientData, flags } = answer("webauthn.create", challenge, more);
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, coseKey(publicKey)]);
      const authData = Buffer.concat([head(rp.id, flags | 0x40), credential]);
      const attestationObject = cborMap([
        [text("fmt"), text("none")],
        [text("attStmt"), Buffer.from([0xa0])],
        [text("authData"), bytes(authData)],
      ]);
      return credentialOf(id, { clientDataJSON: b64(clientData), attestationObject: b64(attestationObject) });
    },
    /** Answers `navigator.credentials.get`. */
    get({ challenge, rpId }: { challenge: string; rpId: string }, more: Deviation = {}) {
      const { clientData, flags } = answer("webauthn.get", challenge, more);
      const authenticatorData = head(rpId, flags);
      const signature = sign("sha256", Buffer.concat([authenticatorData, sha256(clientData)]), privateKey);
      const response = { clientDataJSON: b64(clientData), authenticatorData: b64(authenticatorData) };
      return credentialOf(id, { ...response, signature: b64(signature) });
    },
    rewind: () => (counter = 0),
  };
}

/** What an attacker's answer has otherwise. */
interface Deviation {
  readonly verified?: boolean;
  readonly origin?: string;
}

const credentialOf = (id: Buffer, response: object) => ({
  id: b64(id),
  rawId: b64(id),
  type: "public-key",
  clientExtensionResults: {},
  response,
});

const b64 = (value: Buffer) => value.toString("base64url");
const sha256 = (value: string | Buffer) => createHash("sha256").update(value).digest();

function uint32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
}

/** CBOR (RFC 8949), as far as keys and attestations need it. */
const sized = (major: number, length: number) =>
  length < 24
    ? Buffer.from([major | length])
    : length < 256
      ? Buffer.from([major | 24, length])
      : Buffer.from([major | 25, length >> 8, length & 255]);
const text = (value: string) => Buffer.concat([sized(0x60, value.length), Buffer.from(value)]);
const bytes = (value: Buffer) => Buffer.concat([sized(0x40, value.length), value]);
const cborMap = (pairs: readonly (readonly [Buffer, Buffer])[]) =>
  Buffer.concat([sized(0xa0, pairs.length), ...pairs.flat()]);

/** A COSE key (RFC 9053 §7.1): kty 2, alg -7, crv 1, x, y. */
function coseKey(key: KeyObject): Buffer {
  const { x = "", y = "" } = key.export({ format: "jwk" });
  const of = (value: string) => bytes(Buffer.from(value, "base64url"));
  return cborMap([
    [Buffer.from([0x01]), Buffer.from([0x02])],
    [Buffer.from([0x03]), Buffer.from([0x26])],
    [Buffer.from([0x20]), Buffer.from([0x01])],
    [Buffer.from([0x21]), of(x)],
    [Buffer.from([0x22]), of(y)],
  ]);
}
