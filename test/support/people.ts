import assert from "node:assert/strict";
import { softAuthenticator } from "./authenticator.ts";
import type { Called, TestApi } from "./test-platform.ts";

/** People in browsers at a control plane, whose address becomes `origin`: they join with a passkey, and sign in. */
export function peopleAt(api: TestApi, origin: string) {
  (api.platform.addresses as { controlUrl: string }).controlUrl = origin;
  const headers = { origin, "x-berth-dashboard": "1", "user-agent": "Browser 1.0" };
  const post = (path: string, body: object, cookie = "") =>
    api.call("POST", `/session/${path}`, { headers: { ...headers, cookie }, body });
  const entered = (called: Called) => {
    assert.equal(called.status, 200, called.text);
    const cookie = (called.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    return { token: String(called.body["token"]), cookie };
  };
  /** Returns the code of an invitation's link, which is only in the fragment of its address. */
  const invite = async (by: string, rights: object = {}) => {
    const made = await api.call("POST", "/v1/invites", { token: by, body: rights });
    assert.equal(made.status, 201, made.text);
    return new URL(String(made.body["url"])).hash.slice(1);
  };
  /** Joins an organization as a new person; `by` invites. */
  const person = async (by: string, name: string, rights: object = {}) => {
    const device = softAuthenticator(origin);
    const code = await invite(by, rights);
    const { options } = (await post("join", { code, name })).body;
    const { token, cookie } = entered(await post("join", { code, name, passkey: device.create(options as never) }));
    const { members } = (await api.call("GET", "/v1/members", { token: by })).body as {
      members: { id: string; name: string }[];
    };
    const id = members.find((each) => each.name === name)?.id ?? "";
    const signIn = async () => {
      const { options: asked } = (await post("passkey", {})).body;
      return entered(await post("passkey", { passkey: device.get(asked as never) }));
    };
    return { id, token, cookie, device, signIn };
  };
  return { post, entered, invite, person };
}
