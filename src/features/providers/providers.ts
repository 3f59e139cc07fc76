import type { OutgoingHttp } from "../../ports/outgoing-http.ts";
import type { Columns, Db } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { Refused } from "../refused.ts";
import * as queries from "./queries.ts";
import { parseJson } from "../../kit/parse-json.ts";

/** An identity provider with the secret that Berth has there. */
export interface Provider extends Columns<"provider", "id" | "kind" | "name" | "issuer" | "client_id"> {
  readonly client_secret: string;
  /** Changes with every change of the provider. */
  readonly version: string;
}

export const secretName = "provider_secret";

/** Returns what the sign-in page shows. */
export async function offeredProviders(db: Db) {
  return (await queries.listProviders(db)).map(({ id, name }) => ({ id, name }));
}

export async function openProvider(
  { db, vault }: { readonly db: Db; readonly vault: Vault },
  id: string,
): Promise<Provider> {
  // Anybody may send any text here, also one that the database does not take.
  const found = /^[\w-]+$/.test(id) ? await queries.selectProvider(db, id) : undefined;
  if (found === undefined) throw new Refused("not_found", { error: "People cannot sign in with this provider." });
  const { sealed_secret, updated_at, created_at: _, kind, ...rest } = found;
  const client_secret = vault.open(id, secretName, sealed_secret);
  return { ...rest, kind: kind as Provider["kind"], client_secret, version: updated_at };
}

/** The start of an issuer's description (https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata). */
export interface IssuerDescription {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly token_endpoint_auth_methods_supported?: string[];
}

export const providerTimeoutMs = 8000;
export const mostAnswerBytes = 256 * 1024;

/** Reads what an issuer says about itself; throws a sentence for the operator. */
export async function describeIssuer(outgoing: OutgoingHttp, issuer: string): Promise<IssuerDescription> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const request = { method: "GET", url, headers: { accept: "application/json" }, body: "" } as const;
  const limits = { timeoutMs: providerTimeoutMs, excerptBytes: mostAnswerBytes };
  const answer = await outgoing.send({ ...request, ...limits }, AbortSignal.timeout(providerTimeoutMs));
  if (answer.outcome === "failed") throw new Error(answer.reason);
  if (answer.status !== 200) throw new Error(`It answered with ${answer.status} instead of its description.`);
  const found = parseJson<Partial<IssuerDescription>>(answer.excerpt);
  if (found?.issuer !== issuer)
    throw new Error(`It describes another issuer${typeof found?.issuer === "string" ? `: ${found.issuer}` : ""}.`);
  const endpoints = [found.authorization_endpoint, found.token_endpoint];
  if (!endpoints.every((each) => /^https?:\/\//.test(String(each))))
    throw new Error("Its description lacks the endpoints of a sign-in.");
  return found as IssuerDescription;
}
