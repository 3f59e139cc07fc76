import { useEffect, useState, type FormEvent } from "react";
import type { Client } from "../../../contract/client.ts";
import { signIn } from "../../data/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/copy.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Entrance } from "./entrance.tsx";

/** With a one-time link nothing has to be typed; else with a token. */
export function SignInPage({ onSignedIn }: { readonly onSignedIn: (client: Client) => void }) {
  const [code] = useState(() => (location.pathname === "/sign-in" ? location.hash.slice(1) : ""));
  const [busy, setBusy] = useState(code !== "");
  const [problem, setProblem] = useState<string>();
  const enter = (body: { readonly token: string } | { readonly code: string }) => {
    setBusy(true);
    signIn(body).then(
      (client) => {
        if (location.pathname === "/sign-in") history.replaceState(null, "", "/");
        onSignedIn(client);
      },
      (error: Error) => {
        setBusy(false);
        setProblem(error.message);
      },
    );
  };
  useEffect(() => {
    if (code === "") return;
    // Out of the address bar and the history before anything else; StrictMode's second effect finds it gone.
    if (location.hash === "") return;
    history.replaceState(null, "", "/sign-in");
    enter({ code });
  }, []);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    if (typeof token === "string" && token.trim() !== "" && !busy) enter({ token: token.trim() });
  };
  return (
    <Entrance title="Sign in to Berth">
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field
          label="API token"
          error={problem}
          hint="It stays in this tab's memory; a reload keeps you signed in for 12 hours."
        >
          {(ids) => (
            <Input
              {...ids}
              name="token"
              type="password"
              autoComplete="current-password"
              placeholder="berth_…"
              mono
              autoFocus
              required
            />
          )}
        </Field>
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      <div className="mt-8 border-t border-line pt-5">
        <p className="mb-2 text-sm text-muted">Or, where the command line is logged in:</p>
        <Command>berth open --dashboard</Command>
      </div>
    </Entrance>
  );
}
