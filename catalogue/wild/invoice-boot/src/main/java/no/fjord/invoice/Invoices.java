package no.fjord.invoice;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import java.util.List;
import java.util.Optional;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

@Entity
class Customer {
    @Id Integer id;
    String name;
}

@Entity
class Product {
    @Id Integer id;
    String title;
    int cents;

    String getTitle() {
        return title;
    }

    int getCents() {
        return cents;
    }
}

@Entity
class Line {
    @Id Integer id;
    int pieces;

    @ManyToOne(fetch = FetchType.LAZY)
    Invoice invoice;

    @ManyToOne(fetch = FetchType.LAZY)
    Product product;
}

@Entity
class Invoice {
    @Id Integer id;

    @ManyToOne(fetch = FetchType.LAZY)
    Customer customer;

    @OneToMany(mappedBy = "invoice")
    List<Line> lines;
}

interface Invoices extends JpaRepository<Invoice, Integer> {
    @Query("select sum(l.pieces * l.product.cents) from Line l where l.invoice.id = :id")
    Optional<Long> sumOfLines(int id);
}
