# Varnish needs nothing but its origin: freshness comes from the origin's Cache-Control.
vcl 4.1;
backend origin {
  .host = "127.0.0.1";
  .port = "@ORIGIN@";
}
sub vcl_backend_response {
  set beresp.do_stream = true; # clients of a cold object read while it arrives
  set beresp.grace = 0s;
}
