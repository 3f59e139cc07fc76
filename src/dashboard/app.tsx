import { QueryClientProvider, useQuery, type QueryClient } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useState } from "react";
import type { Client } from "../contract/client.ts";
import { ClientContext, MeContext } from "./data/api.ts";
import { followChanges } from "./data/changes.ts";
import { createQueries } from "./data/create-queries.ts";
import { signOut, type Session } from "./data/session.ts";
import { Entrance } from "./pages/me/entrance.tsx";
import { router } from "./routes.tsx";
import { Button } from "./ui/button.tsx";

// Loaded only when needed: users who are signed in don't wait for it.
const SignInPage = lazy(async () => ({ default: (await import("./pages/me/sign-in-page.tsx")).SignInPage }));

const JoinPage = lazy(async () => ({ default: (await import("./pages/me/join-page.tsx")).JoinPage }));

/** Shows the pages, the sign-in page, or why neither is possible. */
export function App({ resumed }: { readonly resumed: Promise<Session | undefined> }) {
  const [client, setClient] = useState<Client | null>();
  const [stop, setStop] = useState<Reason>();
  useEffect(() => {
    resumed.then(
      (found) => setClient(found ?? null),
      () => setStop("unreachable"),
    );
  }, [resumed]);
  if (stop !== undefined) return <Standstill reason={stop} />;
  if (client === undefined) return null;
  if (client === null)
    return (
      <Suspense>
        {location.pathname === "/join" ? <JoinPage onSignedIn={setClient} /> : <SignInPage onSignedIn={setClient} />}
      </Suspense>
    );
  return <SignedIn client={client} onStop={setStop} />;
}

function SignedIn({ client, onStop }: { readonly client: Client; readonly onStop: (reason: Reason) => void }) {
  const [queries] = useState(() => createQueries(onStop));
  return (
    <ClientContext value={client}>
      <QueryClientProvider client={queries}>
        <Pages client={client} queries={queries} />
      </QueryClientProvider>
    </ClientContext>
  );
}

function Pages({ client, queries }: { readonly client: Client; readonly queries: QueryClient }) {
  const { data: me, error } = useQuery({ queryKey: ["me.get", {}], queryFn: () => client.call("me.get") });
  useEffect(() => followChanges(client, queries), [client, queries]);
  if (me !== undefined)
    return (
      <MeContext value={me}>
        <RouterProvider router={router} />
      </MeContext>
    );
  return error === null ? null : <Standstill reason="unreachable" />;
}

type Reason = "expired" | "suspended" | "unreachable";

const texts: Record<Reason, readonly [string, string]> = {
  expired: [
    "Your session has ended",
    "It has expired, or your access was revoked. Sign in again; nothing that runs is affected.",
  ],
  suspended: [
    "This organization is suspended",
    "The platform's operator has suspended it: its applications, cron jobs and tokens do not work, and nothing is deleted. Ask the operator to enable it again.",
  ],
  unreachable: [
    "The platform does not answer",
    "Applications may still be running: only the control plane is unreachable. Check that it runs and that this computer is online.",
  ],
};

/** Shows why the dashboard can show nothing at the moment, and the one thing to do. */
function Standstill({ reason }: { readonly reason: Reason }) {
  const [title, text] = texts[reason];
  return (
    <Entrance title={title}>
      <p className="mb-6 text-muted">{text}</p>
      {reason === "unreachable" ? (
        <Button look="primary" onClick={() => location.reload()}>
          Try again
        </Button>
      ) : (
        <Button look="primary" onClick={() => void signOut()}>
          Sign in again
        </Button>
      )}
    </Entrance>
  );
}
