package conformance_test

import "net/http"

func init() {
	loads.add(loadCase{spec: `{"calls":3,"rounds":2,"timeout":"2s"}`, calls: 3, serve: timesOut}, "createConfigMaps")
	loads.add(loadCase{spec: `{"calls":4,"rounds":2}`, calls: 4}, "createConfigMaps")
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
