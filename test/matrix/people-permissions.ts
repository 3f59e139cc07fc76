import type { Permission } from "./permission.ts";

const people = { access: "owner", scope: "tokens:write" } as const;
const ofMember = {
  ...people,
  names: "member",
  path: ({ member }: { member: string }) => `/v1/members/${member}`,
} as const;
const all = { names: null, scope: "tokens:read", method: "GET", allowed: 200 } as const;

const me = { access: "member", names: null, scope: null, path: () => "/v1/me/sessions" } as const;

/** The permissions of the rows about people. */
export const peoplePermissions: Readonly<Record<string, Permission>> = {
  "me.sessions": { ...me, method: "GET", allowed: 200 },
  "me.end_sessions": { ...me, method: "POST", path: () => "/v1/me/sessions/end", allowed: 409 },
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
