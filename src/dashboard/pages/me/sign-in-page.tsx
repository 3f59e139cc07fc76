import { useEffect, useState } from "react";
import type { Client } from "../../../contract/client.ts";
import { signIn } from "../../data/session.ts";
import { textOf } from "../../data/text-of.ts";
import { Command } from "../../ui/copy.tsx";
import { TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Entrance } from "./entrance.tsx";

/** Signs in by a one-time link without any input, else with a token. */
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
    // First remove the code from the address bar and the history. StrictMode runs the effect twice; the second run finds no code.
    if (location.hash === "") return;
    history.replaceState(null, "", "/sign-in");
    enter({ code });
  }, []);
  return (
    <Entrance title="Sign in to Berth">
      <Form
        submit="Sign in"
        busy={busy}
        error={null}
        onSubmit={(form) => enter({ token: textOf(form, "token").trim() })}
      >
        <TextField
          name="token"
          label="API token"
          error={problem}
          hint="You stay signed in here for 12 hours; the browser's storage does not get the token."
          type="password"
          autoComplete="current-password"
          placeholder="berth_…"
          mono
          autoFocus
          required
        />
      </Form>
      <div className="mt-8 border-t border-line pt-5">
        <p className="mb-2 text-sm text-muted">Or, where the command line is logged in:</p>
        <Command>berth open --dashboard</Command>
      </div>
    </Entrance>
  );
}
