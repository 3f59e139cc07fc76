import type { Permission } from "./permission.ts";

const people = { access: "owner", scope: "tokens:write" } as const;
const ofMember = {
  ...people,
  names: "member",
  path: ({ member }: { member: string }) => `/v1/members/${member}`,
} as const;
const all = { names: null, scope: "tokens:read", method: "GET", allowed: 200 } as const;

const me = { access: "member", names: null, scope: null, path: () => "/v1/me/sessions" } as const;

const ownPasskey = { ...me, path: () => "/v1/me/passkeys/pky_none" } as const;
const onPerson = { access: "operator", names: null, scope: "orgs:write", method: "POST", allowed: 404 } as const;
const operator = { access: "operator", names: null, scope: "orgs:write" } as const;

/** The permissions of the rows about people. */
export const peoplePermissions: Readonly<Record<string, Permission>> = {
  "me.sessions": { ...me, method: "GET", allowed: 200 },
  "me.end_sessions": { ...me, method: "POST", path: () => "/v1/me/sessions/end", allowed: 409, ofPerson: 204 },
  "me.update": {
    ...me,
    method: "PATCH",
    path: () => "/v1/me",
    body: () => ({ name: "Ada" }),
    allowed: 409,
    ofPerson: 204,
  },
  "me.leave": {
    ...{ ...me, scope: "tokens:write", approval: true, method: "DELETE", path: () => "/v1/me/membership" },
    ...{ allowed: 409, ofPerson: 204 },
  },
  "me.passkeys": { ...me, method: "GET", path: () => "/v1/me/passkeys", allowed: 200 },
  "me.rename_passkey": { ...ownPasskey, method: "PATCH", body: () => ({ name: "Phone" }), allowed: 409, ofPerson: 404 },
  "me.delete_passkey": { ...ownPasskey, approval: true, method: "DELETE", allowed: 409, ofPerson: 404 },
  "me.identities": { ...me, method: "GET", path: () => "/v1/me/identities", allowed: 200 },
  "me.unlink_identity": {
    ...{ ...me, approval: true, method: "DELETE", path: () => "/v1/me/identities/idn_none" },
    ...{ allowed: 409, ofPerson: 404 },
  },
  "providers.list": {
    ...operator,
    scope: "orgs:read",
    method: "GET",
    path: () => "/v1/platform/providers",
    allowed: 200,
  },
  "providers.set": {
    ...{ ...operator, approval: true, method: "PUT", path: () => "/v1/platform/providers/hub", allowed: 200 },
    body: () => ({ kind: "github", name: "GitHub", client_id: "id", client_secret: "secret" }),
  },
  "providers.delete": {
    ...{ ...operator, approval: true, method: "DELETE", path: () => "/v1/platform/providers/none", allowed: 404 },
  },
  "people.accounts": {
    ...operator,
    scope: "orgs:read",
    method: "GET",
    path: () => "/v1/platform/people",
    allowed: 200,
  },
  "people.link": { ...onPerson, approval: true, path: () => "/v1/platform/people/none/link" },
  "people.disable": { ...onPerson, approval: true, path: () => "/v1/platform/people/none/disable" },
  "people.enable": { ...onPerson, path: () => "/v1/platform/people/none/enable" },
  "people.list": { ...all, access: "member", path: () => "/v1/members" },
  "people.update": { ...ofMember, approval: true, method: "PATCH", body: () => ({ role: "owner" }), allowed: 200 },
  "people.remove": { ...ofMember, approval: true, method: "DELETE", allowed: 204 },
  "people.invite": {
    ...{ ...people, names: null, approval: true, method: "POST", path: () => "/v1/invites" },
    body: () => ({ role: "member" }),
    allowed: 201,
  },
  "people.invites": { ...all, access: "owner", path: () => "/v1/invites" },
  "people.revoke": {
    ...{ ...people, names: "invite", approval: true, method: "DELETE", path: ({ invite }) => `/v1/invites/${invite}` },
    allowed: 204,
  },
};
