import { useRef, useState } from "react";

interface OneCall {
  readonly isBusy: boolean;
  /** Why the last call failed. */
  readonly error: Error | null;
  /** Makes a call, unless one is under way. */
  readonly run: (call: () => Promise<unknown>) => Promise<void>;
}

/** Makes calls one at a time: a fast second click comes before the page shows that the first one's call is under way. */
export function useOneCall(): OneCall {
  const underWay = useRef(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (call: () => Promise<unknown>) => {
    if (underWay.current) return;
    underWay.current = true;
    setBusy(true);
    setError(null);
    await call().catch(setError);
    underWay.current = false;
    setBusy(false);
  };
  return { isBusy, error, run };
}
