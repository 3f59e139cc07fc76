import { useEffect, type RefObject } from "react";

/** Marks at which ends a strip has more to scroll to; the utility `fade-x` fades those ends. */
export function useScrollFade(ref: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const strip = ref.current;
    if (strip === null) return undefined;
    const mark = () => {
      const { scrollLeft, clientWidth, scrollWidth } = strip;
      strip.toggleAttribute("data-before", scrollLeft > 1);
      strip.toggleAttribute("data-after", scrollLeft + clientWidth < scrollWidth - 1);
    };
    strip.addEventListener("scroll", mark, { passive: true });
    const observer = new ResizeObserver(mark);
    observer.observe(strip);
    return () => {
      strip.removeEventListener("scroll", mark);
      observer.disconnect();
    };
  }, [ref]);
}
