import { useSyncExternalStore } from "react";

const narrow = matchMedia("(width < 640px)");
const subscribe = (listener: () => void) => {
  narrow.addEventListener("change", listener);
  return () => narrow.removeEventListener("change", listener);
};

export function useIsPhone(): boolean {
  return useSyncExternalStore(subscribe, () => narrow.matches);
}
