import { useEffect, useState } from "react";
import type { Client } from "../../../contract/client.ts";
import {
  hasPasskeys,
  isOpenedElsewhere,
  offeredProviders,
  signIn,
  signInByPasskey,
  type Credential,
  type OfferedProvider,
  type SignInQuestion,
} from "../../data/sign-in.ts";
import { useOneCall } from "../../data/use-one-call.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { Button, Command } from "../../ui/button.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem } from "../../ui/page.tsx";
import { ByProvider } from "./by-provider.tsx";
import { Entrance } from "./entrance.tsx";

/** Signs in by a one-time link, without any input unless the platform asks a question, else with a passkey or a token. */
export function SignInPage({ onSignedIn }: { readonly onSignedIn: (client: Client) => void }) {
  const [code] = useState(() => (location.pathname === "/sign-in" ? location.hash.slice(1) : ""));
  const { isBusy, error, run } = useOneCall();
  const [question, setQuestion] = useState<SignInQuestion>();
  const [next] = useState(pageAfter);
  const [providers, setProviders] = useState<readonly OfferedProvider[]>([]);
  useEffect(() => void offeredProviders().then(setProviders, () => {}), []);
  const entered = (client: Client) => {
    if (next !== undefined) return location.assign(next);
    if (location.pathname === "/sign-in") history.replaceState(null, "", "/");
    onSignedIn(client);
  };
  const enter = (body: Credential) =>
    run(async () => {
      const answer = await signIn(body).finally(() => setQuestion(undefined));
      if ("question" in answer) setQuestion(answer.question);
      else entered(answer);
    });
  useEffect(() => {
    if (code === "") return;
    // First remove the code from the address bar and the history. StrictMode runs the effect twice; the second run finds no code.
    if (location.hash === "") return;
    history.replaceState(null, "", `/sign-in${location.search}`);
    void enter({ code, agreed: false, elsewhere: isOpenedElsewhere() });
  }, []);
  if (question !== undefined)
    return (
      <Question
        question={question}
        busy={isBusy}
        onAgree={() => void enter({ code, agreed: true, elsewhere: false })}
      />
    );
  return (
    <Entrance title="Sign in to Berth">
      {hasPasskeys && <ByPasskey onSignedIn={entered} />}
      {providers.length > 0 && (
        <div className="mb-8 flex flex-col gap-3 border-b border-line pb-6 [&>button]:w-full">
          <ByProvider
            providers={providers}
            wish={{ to: "sign-in", ...(next !== undefined && { next }) }}
            verb="Sign in with"
          />
        </div>
      )}
      <Form
        submit="Sign in"
        look={hasPasskeys ? "plain" : "primary"}
        busy={isBusy}
        onSubmit={(form) => enter({ token: textOf(form, "token").trim() })}
      >
        <TextField
          name="token"
          label="I have an API token"
          error={error?.message}
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

/** Returns the page that sent the person here: only the platform's own pages on which people connect programs. */
function pageAfter(): string | undefined {
  const next = new URLSearchParams(location.search).get("next") ?? "";
  return /^\/session\/(?:authorize\?[\x21-\x5b\x5d-\x7e]+|device)$/.test(next) ? next : undefined;
}

function ByPasskey({ onSignedIn }: { readonly onSignedIn: (client: Client) => void }) {
  const { isBusy, error, run } = useOneCall();
  return (
    <div className="mb-8 flex flex-col gap-3 border-b border-line pb-6 [&>button]:w-full">
      <Button look="primary" busy={isBusy} onClick={() => void run(() => signInByPasskey().then(onSignedIn))}>
        Sign in with a passkey
      </Button>
      {error !== null && <Problem error={error} />}
    </div>
  );
}

interface QuestionProps {
  readonly question: SignInQuestion;
  readonly busy: boolean;
  readonly onAgree: () => void;
}

function Question({ question, busy, onAgree }: QuestionProps) {
  const { present } = question;
  const name = "person" in question ? question.person : question.organization;
  const now =
    present === null
      ? "Another site may have opened it."
      : `This browser is signed in to ${present}; that session would end.`;
  return (
    <Entrance title={`Sign in ${"person" in question ? "as" : "to"} ${name}?`}>
      <p className="mb-3 text-sm">
        {"person" in question ? (
          <>
            This link signs in as <b>{name}</b>, once. Add a passkey within ten minutes, on the page of your
            session.{" "}
          </>
        ) : (
          <>
            This link signs in to the organization <b>{name}</b> with the token <b>{question.token}</b>.{" "}
          </>
        )}
        {now}
      </p>
      <p className="mb-5 text-sm text-muted">
        Continue only if you asked for it: what you enter afterwards goes to {name}.
      </p>
      <div className="flex gap-2">
        <Button look="primary" busy={busy} onClick={onAgree}>
          {"person" in question ? `Sign in as ${name}` : `Sign in to ${name}`}
        </Button>
        <Button onClick={() => location.assign("/")}>
          {present === null ? "Do not sign in" : `Stay in ${present}`}
        </Button>
      </div>
    </Entrance>
  );
}
