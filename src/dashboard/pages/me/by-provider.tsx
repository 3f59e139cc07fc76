import { useState } from "react";
import { goToProvider, type OfferedProvider, type ProviderWish } from "../../data/sign-in.ts";
import { Button } from "../../ui/button.tsx";
import { Problem } from "../../ui/page.tsx";

interface ByProviderProps {
  readonly providers: readonly OfferedProvider[];
  readonly wish: ProviderWish;
  /** What stands before the provider's name on its button. */
  readonly verb: string;
}

/** A button for each identity provider; it leaves the page. */
export function ByProvider({ providers, wish, verb }: ByProviderProps) {
  const [busy, setBusy] = useState("");
  const [problem, setProblem] = useState<Error>();
  const go = (id: string) => {
    setBusy(id);
    setProblem(undefined);
    void goToProvider(id, wish).catch((error: Error) => {
      setProblem(error);
      setBusy("");
    });
  };
  return (
    <>
      {providers.map(({ id, name }) => (
        <Button key={id} busy={busy === id} onClick={() => go(id)}>
          {`${verb} ${name}`}
        </Button>
      ))}
      {problem !== undefined && <Problem error={problem} />}
    </>
  );
}
