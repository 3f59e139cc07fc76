import { useEffect, useState } from "react";
import type { Client } from "../../../contract/client.ts";
import { join, readInvitation, type Invitation } from "../../data/sign-in.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem } from "../../ui/page.tsx";
import { Plain } from "../../ui/text.tsx";
import { ByProvider } from "./by-provider.tsx";
import { Entrance } from "./entrance.tsx";

/** Joins an organization by an invitation's link: a name and a passkey, or one click for a person who is signed in. */
export function JoinPage({ onSignedIn }: { readonly onSignedIn: (client: Client) => void }) {
  const [code] = useState(() => location.hash.slice(1));
  const [invitation, setInvitation] = useState<Invitation>();
  const [problem, setProblem] = useState<Error>();
  useEffect(() => void readInvitation(code).then(setInvitation, setProblem), [code]);
  const enter = async (name?: string) => {
    const client = await join(code, name);
    history.replaceState(null, "", "/");
    onSignedIn(client);
  };
  if (invitation === undefined)
    return problem === undefined ? null : (
      <Entrance title="This invitation does not work">
        <Problem error={problem} />
      </Entrance>
    );
  const {
    organization,
    invited_by: by,
    role,
    projects,
    present,
    passkeys_unavailable: without,
    providers,
  } = invitation;
  return (
    <Entrance title={`Join ${organization}`}>
      <p className="mb-5 text-sm text-muted">
        <Plain>{by}</Plain> invites you as {role === "owner" ? "an owner" : "a member"}
        {projects === null
          ? ""
          : `, for ${projects.length === 1 ? "the project" : "the projects"} ${projects.join(", ")}`}
        .
      </p>
      {present !== null && (
        <div className="mb-6 border-b border-line pb-6 [&_button]:w-full">
          <Form submit={`Join as ${present}`} onSubmit={() => enter()}>
            {null}
          </Form>
        </div>
      )}
      <Form
        submit={without === null ? "Create a passkey and join" : "Join"}
        look={present === null ? "primary" : "plain"}
        onSubmit={(form) => enter(textOf(form, "name").trim())}
      >
        <TextField
          name="name"
          label="Your name"
          hint={without ?? "Your computer or phone keeps the passkey; you sign in with it from then on."}
          autoComplete="name"
          maxLength={100}
          autoFocus
          required
        />
      </Form>
      {providers.length > 0 && (
        <div className="mt-6 flex flex-col gap-3 border-t border-line pt-6 [&>button]:w-full">
          <ByProvider providers={providers} wish={{ to: "join", code }} verb="Join with" />
        </div>
      )}
      {without !== null && providers.length === 0 && (
        <p className="mt-4 text-sm text-muted">
          Without a passkey you cannot sign in again once this session ends; an owner can then invite you anew.
        </p>
      )}
    </Entrance>
  );
}
