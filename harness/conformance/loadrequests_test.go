package conformance_test

import "net/http"

func init() {
	const creations = `"method":"POST","path":"/api/v1/namespaces/relapse-item/configmaps",` +
		`"body":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"item-$(n)"}}`
	for _, c := range []loadCase{
		{spec: `{` + creations + `,"calls":3,"rounds":2,"timeout":"2s"}`, calls: 3, serve: timesOut},
		{spec: `{` + creations + `,"calls":4,"rounds":2,"parallel":2}`, calls: 4},
		{spec: `{"path":"/api/v1/namespaces?watch=1","calls":2,"rounds":2,"cutAfter":"600ms"}`, calls: 2, asks: watches, bare: true},
	} {
		loads.add(c, "requests")
	}
}

// timesOut answers creations as an API server does when a request's time is up.
func timesOut(*loaded) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		ours := r.Method == http.MethodPost && r.URL.Query().Get("timeout") == "2s"
		if ours {
			http.Error(w, "time is up", http.StatusGatewayTimeout)
		}
		return ours
	}
}

func watches(r *http.Request) bool { return r.URL.Query().Has("watch") }
