-- wrk says what it counted as one line of JSON. No request() here: wrk then sends one fixed request, at full speed.
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "bytes": %d, "seconds": %.6f, "errors": %d, "p50": %.1f, "p99": %.1f}\n',
    summary.requests, summary.bytes, summary.duration / 1e6,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
