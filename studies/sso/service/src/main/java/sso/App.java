package sso;

import io.micrometer.observation.ObservationPredicate;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.context.annotation.Bean;
import org.springframework.http.server.observation.ServerRequestObservationContext;

/** Single sign-on over six endpoints: logs, users, authorize, ban, unban, websites. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class App {

    public static void main(String[] arguments) {
        SpringApplication.run(App.class, arguments);
    }

    /** Only what users ask for is counted: whoever reads the counters must not change them. */
    @Bean
    ObservationPredicate onlyTheInterface() {
        return (name, context) -> !(context instanceof ServerRequestObservationContext request)
                || request.getCarrier() == null
                || request.getCarrier().getRequestURI().startsWith("/api/");
    }
}
