package conformance_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	faults.add(faultCase{name: "admission", lay: layWebhooks}, "webhook")
}

// webhookAPI is the part of an API server that handles webhooks: it keeps their registrations, and calls the webhooks
// of ConfigMaps within the request's time limit.
type webhookAPI struct {
	losses map[*criNode]*atomic.Int64 // deletions of the nodes' registrations

	mu  sync.Mutex
	all map[string]map[string]any // registrations by resource and name
}

// layWebhooks gives the world's API server webhook registrations. The nodes' hooks are called before a request for a
// node's registration is served.
func layWebhooks(_ *testing.T, w *world) sight {
	a := &webhookAPI{losses: newCounts(w), all: map[string]map[string]any{}}
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/v1/") {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
				return a.admit(rw, r)
			}
			return false
		}
		for _, n := range w.nodes {
			if strings.HasSuffix(r.URL.Path, n.Name()) {
				if err := n.hooked(r.Context(), []string{"webhook", "probe"}); err != nil {
					http.Error(rw, err.Error(), http.StatusInternalServerError)
					return true
				}
				if r.Method == http.MethodDelete {
					a.losses[n].Add(1)
				}
			}
		}
		a.serve(rw, r)
		return true
	})
	return sight{armed: a.armed, inForce: a.answers}
}

// serve creates, gets and deletes registrations.
func (a *webhookAPI) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	at := strings.TrimPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/v1/")
	if r.Method == http.MethodPost {
		var o map[string]any
		_ = json.NewDecoder(r.Body).Decode(&o) // a client of ours sends only valid JSON
		a.all[path.Join(at, o["metadata"].(map[string]any)["name"].(string))] = o
		_ = json.NewEncoder(w).Encode(o)
		return
	}
	o, ok := a.all[at]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: at + " not found"})
		return
	}
	if r.Method == http.MethodDelete {
		delete(a.all, at)
	}
	_ = json.NewEncoder(w).Encode(o)
}

// admit calls all webhooks at once. If the request's time is up meanwhile, admit answers the request and returns
// true.
func (a *webhookAPI) admit(w http.ResponseWriter, r *http.Request) bool {
	limit, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	var asked sync.WaitGroup
	for _, c := range a.configs("") {
		asked.Go(func() { _, _ = review(ctx, c) }) // failures are ignored
	}
	asked.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		http.Error(w, "time is up", http.StatusGatewayTimeout)
		return true
	}
	return false
}

// configs returns the client configurations of the webhooks in registrations whose name ends with end.
func (a *webhookAPI) configs(end string) (out []admissionv1.WebhookClientConfig) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, o := range a.all {
		if !strings.HasSuffix(at, end) {
			continue
		}
		raw, _ := json.Marshal(o)
		var of struct {
			Webhooks []admissionv1.ValidatingWebhook `json:"webhooks"`
		}
		_ = json.Unmarshal(raw, &of) // it came as one
		for _, h := range of.Webhooks {
			out = append(out, h.ClientConfig)
		}
	}
	return out
}

// review calls one webhook and returns its audit annotations.
func review(ctx context.Context, c admissionv1.WebhookClientConfig) (map[string]string, error) {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(c.CABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1"}}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, *c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		Response struct {
			UID              string
			Allowed          bool
			AuditAnnotations map[string]string
		}
	}
	raw, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err == nil && (out.Response.UID != "u1" || !out.Response.Allowed) {
		err = fmt.Errorf("answered %s", raw)
	}
	return out.Response.AuditAnnotations, err
}

// served tells whether somebody listens at the address of a webhook.
func served(c admissionv1.WebhookClientConfig) bool {
	u, err := url.Parse(*c.URL)
	if err != nil {
		return false
	}
	conn, err := net.Dial("tcp", u.Host)
	return err == nil && conn.Close() == nil
}

// armed counts deletions of registrations for a node, and lists the registrations whose address somebody
// serves.
func (a *webhookAPI) armed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	for _, c := range a.configs(n.Name()) {
		if served(c) {
			armed = append(armed, *c.URL)
		}
	}
	return int(a.losses[n].Load()), armed
}

// answers tells whether both webhooks for a node answer by the rule that the suite gives them. Those by which the fault is
// seen allow everything.
func (a *webhookAPI) answers(t *testing.T, n *criNode) bool {
	t.Helper()
	byRule := 0
	for _, c := range a.configs(n.Name()) {
		if said, err := review(t.Context(), c); err == nil && said["arm"] == arm { // an error is a server that has ended
			byRule++
		}
	}
	return byRule == 2
}
