/** Returns the variables of the control plane's environment that package managers and other tools get. */
export function toolEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  // npm sets these for the scripts that it runs (npm start is one). They describe this package, not the operator's registry settings.
  const aboutThisRun =
    /^npm_config_(local_prefix|global_prefix|prefix|node_gyp|noproxy|user_agent|init_module|cache)$/i;
  const entries = Object.entries(environment).filter(
    ([name, value]) => value !== undefined && forTools.test(name) && !aboutThisRun.test(name),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

const forTools =
  /^(PATH|HOME|LANG|TZ|(https?|no|all)_proxy|npm_config_.*|pip_.*|goproxy|gosumdb|goflags|goprivate|ssl_cert_(file|dir)|node_extra_ca_certs|node_use_system_ca|requests_ca_bundle|curl_ca_bundle)$/i;
