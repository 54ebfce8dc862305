package hire;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cache.annotation.EnableCaching;

@SpringBootApplication
@EnableCaching
public class Application {
    public static void main(String[] args) throws Exception {
        Telematics.listen(Integer.parseInt(System.getenv("TELEMATICS_PORT")));
        SpringApplication.run(Application.class, args);
    }
}
